"""Hummer et al. (WS-Aggregation): variable neighbourhood search for F = w_L L + w_T T + w_D D + w_M M.

Section 5.1: four neighbourhoods make solutions that are like the best one so far, and the search goes on from whatever
is better. Three of them aim at one part of F each; the fourth, random swaps, leaves local optima. A solution is priced
by what a swap changes of F. Valid are solutions in which a node to which something comes has no more stress, load over
cpu, than `stress` (lambda of section 4.2); what is there already may stay. What fits nowhere is refused.

Added to the paper: three neighbourhoods, of one buffer and of one input wherever it could go, and of two inputs of a
source that change places. And L sees only the least loaded node, so that evening out several of them pays when the last
one is done, and no single step towards it does; every other descent therefore first follows the loads' distance from
their mean in place of L.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import inf
from random import Random

from towpath.placement.costs.hummer import KB
from towpath.placement.flows import flows, fragment_loads, fragment_states
from towpath.placement.problem import Placement, Problem

OBJECTIVE = "hummer.F"
ROUNDING = 1e-9
EVENNESS = (0.5, 4.0)  # how much evening out may weigh against the other parts of F
Price = Callable[[], float]


@dataclass(frozen=True)
class Options:
    load: float = 1.0  # w_L
    transfer: float = 1.0  # w_T
    duplication: float = 1.0  # w_D
    migration: float = 1.0  # w_M
    stress: float = 0.9  # lambda: the share of a node's cpu above which it takes nothing in
    evaluations: int = 20_000  # solutions to price; 0: any number
    seconds: float = 0.0  # of the processor, to search for at most; 0: any number, and the same answer in every run
    patience: int = 10_000  # it ends when so many solutions have brought nothing better; 0: never
    enough: float = 0.0  # it ends with an F that is no larger
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Swap:
    """A copy of a fragment goes to another node."""

    fragment: int
    copy: int
    node: int


@dataclass(frozen=True)
class SearchOutcome:
    placement: Placement
    cost: float  # F of it
    begun: float  # F of where it began: what ran stayed, and the rest had a place
    evaluated: int  # solutions that were priced
    seconds: float  # of the processor


def plan(problem: Problem, options: Options) -> Placement:
    return search(problem, options).placement


def search(problem: Problem, options: Options) -> SearchOutcome:
    begin = time.thread_time()
    solution = _Solution(problem, options)
    refused = solution.start()
    begun = solution.cost
    searching = _Search(solution, options)
    searching.run()
    seconds = time.thread_time() - begin
    return SearchOutcome(solution.placement(refused), solution.cost, begun, searching.evaluated, seconds)


class _Solution:
    """An assignment of fragments to nodes with everything that F is made of, kept up to date swap by swap."""

    def __init__(self, problem: Problem, options: Options) -> None:
        self._problem = problem
        self._weights = options
        nodes = problem.cluster.nodes
        self.nodes = [n for n, node in enumerate(nodes) if node.cpu > 0]
        self._works = [node.cpu > 0 for node in nodes]
        self._room = [node.cpu * options.stress * (1 + ROUNDING) for node in nodes]
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
        self._came = [0] * len(nodes)  # how many on a node were not there before
        self._buffers = [[0] * len(nodes) for _ in streams]  # by stream and node: the fragments there that read it
        self._holders = [0] * len(streams)  # the nodes with any
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
        """What runs stays; the rest goes where there is most room. Returns the queries for which there is none.

        A query that has lost a copy gets another one, on a node that has none yet.
        """
        of: dict[str, list[int]] = {query.name: [] for query in self._problem.queries}
        for n, fragment in enumerate(self._problem.fragments):
            of[fragment.query].append(n)
            self._keep(n, self._problem.query[fragment.query].copies)
        refused: dict[str, str] = {}
        for query in self._problem.queries:
            if not all(self._complete(n, query.copies) for n in of[query.name]):
                for n in of[query.name]:
                    self._clear(n)
                share = f"{self._weights.stress:.0%}"
                refused[query.name] = f"no node would stay below {share} of its cpu with it; add a node"
        return refused

    def _keep(self, fragment: int, copies: int) -> None:
        pinned = self._problem.pinned.get(self._problem.fragments[fragment].name)
        if pinned is not None:
            self._put(fragment, self._problem.cluster.position[pinned])
            return
        for node in [node for node in self._before[fragment] if self._works[node]][:copies]:
            self._put(fragment, node)

    def _complete(self, fragment: int, copies: int) -> bool:
        while len(self.at[fragment]) < copies:
            free = [n for n in self.nodes if self.has_room(fragment, n)]
            if not free:
                return False
            self._put(fragment, min(free, key=lambda n: self._busy[n] - self._room[n]))
        return True

    def has_room(self, fragment: int, node: int) -> bool:
        """Whether a node may take a fragment in: with everything that came it must fit."""
        if node in self.at[fragment]:
            return False
        stays = node in self._before[fragment] and not self._came[node]
        return stays or self._busy[node] + self._work[fragment] <= self._room[node]

    def _clear(self, fragment: int) -> None:
        for node in list(self.at[fragment]):
            self._take(fragment, node)

    def copy(self) -> list[tuple[int, ...]]:
        return list(map(tuple, self.at))

    def restore(self, copied: Sequence[Sequence[int]]) -> None:
        for fragment, nodes in enumerate(copied):
            if tuple(self.at[fragment]) != nodes:
                self._clear(fragment)
                for node in nodes:
                    self._put(fragment, node)

    # --- swaps -------------------------------------------------------------------------------------------------------

    @property
    def cost(self) -> float:
        """F (eq. 5)."""
        loads = [self.load[n] for n in self.nodes]
        return self._weights.load * (sum(loads) - len(loads) * min(loads, default=0.0)) + self._rest

    def even(self, factor: float) -> float:
        """F with the loads' distances from their mean, times a factor, in place of L."""
        loads = [self.load[n] for n in self.nodes]
        mean = sum(loads) / len(loads)
        return factor * self._weights.load * sum([abs(load - mean) for load in loads]) + self._rest

    @property
    def _rest(self) -> float:
        w = self._weights
        return w.transfer * self._transfer + w.duplication * self._duplicates + w.migration * self._migration

    def movable(self) -> list[int]:
        pinned = self._problem.pinned
        return [n for n, f in enumerate(self._problem.fragments) if self.at[n] and f.name not in pinned]

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
        if node not in self._before[fragment]:
            self._came[node] += sign
            self._migration += sign * self._moved(fragment, node)
        self.load[node] += sign * self.rate[fragment]  # inf stays inf
        for stream in self.sources[fragment]:
            buffers = self._buffers[stream]
            buffers[node] += sign
            if buffers[node] == (1 if sign > 0 else 0):
                # dupl(s) counts the nodes beyond the first.
                self._duplicates += sign if self._holders[stream] > (0 if sign > 0 else 1) else 0
                self._holders[stream] += sign

    def _moved(self, fragment: int, node: int) -> float:
        """migr(i) (eq. 1): the bytes to be brought to a node."""
        if not self._before[fragment]:
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
        self._options = options
        self._rng = Random(options.seed)
        self.evaluated = 0
        self._improved = 0  # what was evaluated by then
        self._until = time.thread_time() + options.seconds if options.seconds else inf
        self._movable = solution.movable()
        self._by_source: dict[int, list[int]] = {}
        for fragment in self._movable:
            for stream in solution.sources[fragment]:
                self._by_source.setdefault(stream, []).append(fragment)
        self._bundles = [bundle for bundle in self._dependent() if len(bundle) > 1]
        self._sources = list(self._by_source.values())
        self._groups = [*self._sources, *self._bundles]

    def run(self) -> None:
        """Descends, then jumps from the best solution, each time a little further until something better is found."""
        solution = self._solution
        if not self._movable or len(solution.nodes) < 2:
            return
        self._even_out(1.0)
        self._descend(lambda: solution.cost)
        best, found, distance, rounds = solution.cost, solution.copy(), 1, 0
        while self._go_on() and best > self._options.enough:
            undo, rounds = self._jump(distance), rounds + 1
            if rounds % 2:
                undo += self._even_out(self._rng.uniform(*EVENNESS))
            undo += self._descend(lambda: solution.cost)
            margin = ROUNDING * max(1.0, abs(best))
            if solution.cost < best - margin:
                best, found, distance, self._improved = solution.cost, solution.copy(), 1, self.evaluated
                continue
            distance = distance % len(self._movable) + 1
            if solution.cost > best + margin:  # another one that is as good is a way out, too
                for swap in reversed(undo):
                    solution.apply(swap)
        solution.restore(found)  # of those that are as good, the first: the others only move more

    def _even_out(self, factor: float) -> list[Swap]:
        return self._descend(lambda: self._solution.even(factor))

    def _go_on(self) -> bool:
        limits = self._options
        if limits.patience and self.evaluated - self._improved >= limits.patience:
            return False
        left = not limits.evaluations or self.evaluated < limits.evaluations
        return left and (self._until == inf or time.thread_time() < self._until)

    def _descend(self, price: Price) -> list[Swap]:
        """Goes through the neighbourhoods until none has anything better; returns what takes all of it back."""
        undo: list[Swap] = []
        around = (
            self._avoid_duplicates,
            self._bundle_dependent,
            self._equal_load,
            self._buffer,
            self._exchange,
            self._single,
        )
        k = 0
        while k < len(around) and self._go_on():
            better = self._first_of(around[k](), price)
            undo += better
            k = 0 if better else k + 1
        return undo

    def _first_of(self, candidates: Iterator[Sequence[Swap]], price: Price) -> list[Swap]:
        """Makes the first of some changes that is better than none; returns what takes it back."""
        before = price()
        wanted = before - ROUNDING * max(1.0, abs(before))
        for swaps in candidates:
            undo = self._make(swaps)
            self.evaluated += 1
            if undo and price() < wanted:
                return undo
            for swap in reversed(undo):
                self._solution.apply(swap)
            if not self._go_on():
                break
        return []

    def _make(self, swaps: Sequence[Swap]) -> list[Swap]:
        """All of them or none, if one is not allowed."""
        undo: list[Swap] = []
        for swap in swaps:
            if not self._solution.has_room(swap.fragment, swap.node):
                for made in reversed(undo):
                    self._solution.apply(made)
                return []
            undo.append(self._solution.apply(swap))
        return undo

    def _jump(self, distance: int) -> list[Swap]:
        """Random aggregator swap: some inputs get other nodes, each its own, or those of a source or query one."""
        rng, nodes = self._rng, self._solution.nodes
        if self._groups and rng.random() < 0.5:
            group, node = rng.choice(self._groups), rng.choice(nodes)
            wanted = [(fragment, node) for fragment in rng.sample(group, rng.randint(1, len(group)))]
        else:
            chosen = rng.sample(self._movable, min(distance, len(self._movable)))
            wanted = [(fragment, rng.choice(nodes)) for fragment in chosen]
        undo = []
        for fragment, node in wanted:
            swap = Swap(fragment, rng.randrange(len(self._solution.at[fragment])), node)
            if self._solution.has_room(swap.fragment, swap.node):
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

    def _buffer(self) -> Iterator[Sequence[Swap]]:
        """What a node has of one source, all of it or a part, wherever it could go."""
        solution, rng = self._solution, self._rng
        for inputs in rng.sample(self._sources, len(self._sources)):
            for source in sorted({n for i in inputs for n in solution.at[i]}):
                there = [i for i in inputs if source in solution.at[i]]
                for node in solution.nodes if len(there) > 1 else ():
                    moved = [Swap(i, solution.at[i].index(source), node) for i in there if node not in solution.at[i]]
                    if len(moved) > 1:
                        yield moved
                        yield rng.sample(moved, rng.randrange(1, len(moved)))

    def _exchange(self) -> Iterator[Sequence[Swap]]:
        """Two inputs of one source, each where the other was: neither loads nor buffers change by that."""
        at = self._solution.at
        for inputs in self._rng.sample(self._sources, len(self._sources)):
            for one, other in combinations(inputs, 2):
                here, there = at[one][0], at[other][0]
                if here not in at[other] and there not in at[one]:
                    yield [Swap(one, 0, there), Swap(other, 0, here)]

    def _single(self) -> Iterator[Sequence[Swap]]:
        """One input, wherever it could go."""
        for fragment in self._rng.sample(self._movable, len(self._movable)):
            for copy in range(len(self._solution.at[fragment])):
                for node in self._solution.nodes:
                    if node not in self._solution.at[fragment]:
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
