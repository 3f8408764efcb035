"""Hummer et al. (WS-Aggregation): variable neighbourhood search for F = w_L L + w_T T + w_D D + w_M M.

Section 5.1: four neighbourhoods make solutions that are like the best one so far, and the search goes on from whatever
is better. Three of them aim at one part of F each; the fourth, random swaps, leaves local optima. A solution is priced
by what a swap changes of F. Valid are solutions in which no node takes in a fragment that would bring its stress, load
over cpu, above `stress` (lambda of section 4.2); who is there already may stay. What fits nowhere is refused.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from random import Random

from towpath.cost.hummer import KB
from towpath.placement.flows import flows, fragment_loads, fragment_states
from towpath.placement.problem import Placement, Problem

OBJECTIVE = "hummer.F"


@dataclass(frozen=True)
class Options:
    load: float = 1.0  # w_L
    transfer: float = 1.0  # w_T
    duplication: float = 1.0  # w_D
    migration: float = 1.0  # w_M
    stress: float = 0.9  # lambda: the share of a node's cpu above which it takes nothing in
    evaluations: int = 20_000  # solutions to price
    seconds: float = 0.0  # to search for at most; 0: as long as there are evaluations, the same answer in every run
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Swap:
    """A copy of a fragment goes to another node."""

    fragment: int
    copy: int
    node: int


def plan(problem: Problem, options: Options) -> Placement:
    solution = _Solution(problem, options)
    refused = solution.start()
    _Search(solution, options).run()
    return solution.placement(refused)


class _Solution:
    """An assignment of fragments to nodes with everything that F is made of, kept up to date swap by swap."""

    def __init__(self, problem: Problem, options: Options) -> None:
        self._problem = problem
        self._weights = options
        nodes = problem.cluster.nodes
        self.nodes = [n for n, node in enumerate(nodes) if node.cpu > 0]
        self._room = [node.cpu * options.stress for node in nodes]
        names = {f.name: n for n, f in enumerate(problem.fragments)}
        streams = {s.name: n for n, s in enumerate(problem.streams)}
        self.sources: list[list[int]] = [[] for _ in names]  # the streams that each fragment reads
        self.rate = [0.0] * len(names)  # of those, in kB/s
        self.producers: list[list[tuple[int, float]]] = [[] for _ in names]  # (fragment, kB/s)
        self._consumers: list[set[int]] = [set() for _ in names]
        for flow in flows(problem):
            reader = names[flow.consumer]
            if flow.producer in streams:
                self.sources[reader].append(streams[flow.producer])
                self.rate[reader] += flow.bytes / KB
            else:
                producer = names[problem.home[flow.producer]]
                self.producers[reader].append((producer, flow.bytes / KB))
                self._consumers[producer].add(reader)
        self._work = list(fragment_loads(problem).values())
        self._state = list(fragment_states(problem).values())
        self.at: list[list[int]] = [[] for _ in names]  # the nodes of each fragment's copies
        self.load = [0.0 if n in self.nodes else inf for n in range(len(nodes))]  # kB/s; inf: it takes nothing
        self._busy = [0.0] * len(nodes)
        self._buffers = [[0] * len(nodes) for _ in streams]  # by stream and node: the fragments there that read it
        self._duplicates = self._transfer = self._migration = 0.0
        self._before = [self._nodes_before(f.name) for f in problem.fragments]
        self._buffered = self._buffers_before()

    def _nodes_before(self, fragment: str) -> list[int]:
        position, current = self._problem.cluster.position, self._problem.current
        nodes = () if current is None else current.nodes.get(fragment, ())
        return [position[node] for node in nodes if node in position]

    def _buffers_before(self) -> set[tuple[int, int]]:
        return {
            (s, node)
            for sources, nodes in zip(self.sources, self._before, strict=True)
            for s in sources
            for node in nodes
        }

    # --- the first solution ------------------------------------------------------------------------------------------

    def start(self) -> dict[str, str]:
        """What runs stays; the rest goes where there is most room. Returns the queries for which there is none."""
        refused: dict[str, str] = {}
        for query in self._problem.queries:
            numbers = [n for n, f in enumerate(self._problem.fragments) if f.query == query.name]
            if not all(self._settle(n, query.copies) for n in numbers):
                for n in numbers:
                    self._clear(n)
                share = f"{self._weights.stress:.0%}"
                refused[query.name] = f"no node would stay below {share} of its cpu with it; add a node"
        return refused

    def _settle(self, fragment: int, copies: int) -> bool:
        pinned = self._problem.pinned.get(self._problem.fragments[fragment].name)
        if pinned is not None:
            wanted = [self._problem.cluster.position[pinned]]
        else:
            kept = [node for node in self._before[fragment] if node in self.nodes][:copies]
            emptiest = sorted((n for n in self.nodes if n not in kept), key=lambda n: self._busy[n] - self._room[n])
            fits = [n for n in emptiest if self._busy[n] + self._work[fragment] <= self._room[n]]
            wanted = [*kept, *fits][:copies]
            if len(wanted) < copies:
                return False
        for node in wanted:
            self._put(fragment, node)
        return True

    def _clear(self, fragment: int) -> None:
        for node in list(self.at[fragment]):
            self._take(fragment, node)

    # --- swaps -------------------------------------------------------------------------------------------------------

    @property
    def cost(self) -> float:
        w = self._weights
        loads = [self.load[n] for n in self.nodes]
        spread = sum(loads) - len(loads) * min(loads, default=0.0)
        flow = w.transfer * self._transfer + w.duplication * self._duplicates
        return w.load * spread + flow + w.migration * self._migration

    def movable(self) -> list[int]:
        pinned = self._problem.pinned
        return [n for n, f in enumerate(self._problem.fragments) if self.at[n] and f.name not in pinned]

    def allows(self, swap: Swap) -> bool:
        fragment, node = swap.fragment, swap.node
        if node in self.at[fragment]:
            return False
        return node in self._before[fragment] or self._busy[node] + self._work[fragment] <= self._room[node]

    def apply(self, swap: Swap) -> Swap:
        """Makes the swap; returns the one that takes it back."""
        source = self.at[swap.fragment][swap.copy]
        self._take(swap.fragment, source, swap.copy)
        self._put(swap.fragment, swap.node, swap.copy)
        return Swap(swap.fragment, swap.copy, source)

    def _put(self, fragment: int, node: int, copy: int | None = None) -> None:
        self._count(fragment, node, 1)
        before = self._flows_around(fragment)
        self.at[fragment].insert(len(self.at[fragment]) if copy is None else copy, node)
        self._transfer += self._flows_around(fragment) - before

    def _take(self, fragment: int, node: int, copy: int | None = None) -> None:
        self._count(fragment, node, -1)
        before = self._flows_around(fragment)
        self.at[fragment].pop(self.at[fragment].index(node) if copy is None else copy)
        self._transfer += self._flows_around(fragment) - before

    def _count(self, fragment: int, node: int, sign: int) -> None:
        self._busy[node] += sign * self._work[fragment]
        if node in self.nodes:
            self.load[node] += sign * self.rate[fragment]
        self._migration += sign * self._moved(fragment, node)
        for stream in self.sources[fragment]:
            buffers = self._buffers[stream]
            others = sum(1 for count in buffers if count) - (1 if buffers[node] else 0)
            buffers[node] += sign
            # dupl(s) counts the nodes beyond the first; this node is one of them or not any more.
            if buffers[node] == (1 if sign > 0 else 0) and others:
                self._duplicates += sign

    def _moved(self, fragment: int, node: int) -> float:
        """migr(i) (eq. 1): the bytes to be brought to a node."""
        if not self._before[fragment] or node in self._before[fragment]:
            return 0.0
        read = self.sources[fragment] or [-1]
        fresh = sum(1 for stream in read if (stream, node) not in self._buffered)
        return self._state[fragment] * fresh / len(read)

    def _flows_around(self, fragment: int) -> float:
        """T of what a fragment reads and of what is read from it."""
        return sum(map(self._read, {fragment, *self._consumers[fragment]}))

    def _read(self, reader: int) -> float:
        total = 0.0
        for producer, rate in self.producers[reader]:
            total += rate * sum(1 for node in self.at[reader] if node not in self.at[producer])
        return total

    def placement(self, refused: dict[str, str]) -> Placement:
        nodes = self._problem.cluster.nodes
        placed = zip(self._problem.fragments, self.at, strict=True)
        return Placement({f.name: tuple(nodes[n].name for n in at) for f, at in placed if at}, refused)


class _Search:
    def __init__(self, solution: _Solution, options: Options) -> None:
        self._solution = solution
        self._rng = Random(options.seed)
        self._left = options.evaluations
        self._until = time.monotonic() + options.seconds if options.seconds else inf
        self._movable = solution.movable()
        self._by_source: dict[int, list[int]] = {}
        for fragment in self._movable:
            for stream in solution.sources[fragment]:
                self._by_source.setdefault(stream, []).append(fragment)
        self._bundles = [bundle for bundle in self._dependent() if len(bundle) > 1]

    def run(self) -> None:
        """Descends, then jumps from the best solution, each time a little further until something better is found."""
        if not self._movable or len(self._solution.nodes) < 2:
            return
        self._descend()
        best, distance, patience = self._solution.cost, 1, 4 * len(self._movable) + 20
        while self._go_on() and patience:
            undo = self._jump(distance)
            undo += self._descend()
            if self._solution.cost < best - 1e-12 * max(1.0, abs(best)):
                best, distance, patience = self._solution.cost, 1, 4 * len(self._movable) + 20
            else:
                for swap in reversed(undo):
                    self._solution.apply(swap)
                distance, patience = distance % len(self._movable) + 1, patience - 1

    def _go_on(self) -> bool:
        return self._left > 0 and time.monotonic() < self._until

    def _descend(self) -> list[Swap]:
        """Goes through the neighbourhoods until none has anything better; returns what takes all of it back."""
        undo: list[Swap] = []
        around = (self._avoid_duplicates, self._bundle_dependent, self._equal_load, self._single)
        k = 0
        while k < len(around) and self._go_on():
            better = self._best_of(around[k]())
            undo += better
            k = 0 if better else k + 1
        return undo

    def _best_of(self, candidates: Iterator[Sequence[Swap]]) -> list[Swap]:
        """Makes the best of some changes, if it is better than none; returns what takes it back."""
        solution, best, chosen = self._solution, self._solution.cost, None
        threshold = best - 1e-12 * max(1.0, abs(best))
        for swaps in candidates:
            undo = self._make(swaps)
            if undo and solution.cost < threshold:
                threshold, chosen = solution.cost, swaps
            for swap in reversed(undo):
                solution.apply(swap)
            self._left -= 1
        return [] if chosen is None else self._make(chosen)

    def _make(self, swaps: Sequence[Swap]) -> list[Swap]:
        """All of them or none, if one is not allowed."""
        undo: list[Swap] = []
        for swap in swaps:
            if not self._solution.allows(swap):
                for made in reversed(undo):
                    self._solution.apply(made)
                return []
            undo.append(self._solution.apply(swap))
        return undo

    def _jump(self, distance: int) -> list[Swap]:
        """Random aggregator swap: some inputs get other nodes."""
        undo = []
        for fragment in self._rng.sample(self._movable, min(distance, len(self._movable))):
            copy = self._rng.randrange(len(self._solution.at[fragment]))
            swap = Swap(fragment, copy, self._rng.choice(self._solution.nodes))
            if self._solution.allows(swap):
                undo.append(self._solution.apply(swap))
        return undo

    # --- neighbourhoods ----------------------------------------------------------------------------------------------

    def _avoid_duplicates(self) -> Iterator[Sequence[Swap]]:
        """All inputs of one source on one of the nodes that have some of them now."""
        at = self._solution.at
        shared = [s for s, inputs in self._by_source.items() if len({n for i in inputs for n in at[i]}) > 1]
        if shared:
            inputs = self._by_source[self._rng.choice(shared)]
            for node in sorted({n for i in inputs for n in at[i]}):
                yield [Swap(i, 0, node) for i in inputs if node not in at[i]]

    def _bundle_dependent(self) -> Iterator[Sequence[Swap]]:
        """All inputs of a query that depend on each other on one node."""
        if self._bundles:
            bundle = self._rng.choice(self._bundles)
            for node in self._solution.nodes:
                swaps = [Swap(i, 0, node) for i in bundle if node not in self._solution.at[i]]
                if swaps:
                    yield swaps

    def _equal_load(self) -> Iterator[Sequence[Swap]]:
        """The input with the smallest rate goes from the most to the least loaded node; then the next smallest."""
        solution = self._solution
        by_load = sorted(solution.nodes, key=solution.load.__getitem__)
        least, most = by_load[0], by_load[-1]
        there = [f for f in self._movable if most in solution.at[f]]
        for fragment in sorted(there, key=solution.rate.__getitem__):
            yield [Swap(fragment, solution.at[fragment].index(most), least)]

    def _single(self) -> Iterator[Sequence[Swap]]:
        """One input, wherever it could go."""
        fragment = self._rng.choice(self._movable)
        for copy in range(len(self._solution.at[fragment])):
            for node in self._solution.nodes:
                yield [Swap(fragment, copy, node)]

    def _dependent(self) -> Iterator[list[int]]:
        """Groups of fragments that depend on each other, directly or through others."""
        group = {f: f for f in self._movable}

        def root(f: int) -> int:
            while group[f] != f:
                f = group[f]
            return f

        for reader in self._movable:
            for producer, _ in self._solution.producers[reader]:
                if producer in group:
                    group[root(reader)] = root(producer)
        found: dict[int, list[int]] = {}
        for fragment in self._movable:
            found.setdefault(root(fragment), []).append(fragment)
        yield from found.values()
