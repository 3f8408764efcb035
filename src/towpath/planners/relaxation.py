"""Pietzuch et al. (SBON): fragments settle like bodies between springs, then go to the nearest node that has room.

Section 3.1.2: in a space where distance is latency, what flows between two fragments, or between a fragment and a
stream or a sink, pulls them together by its data rate. The bodies come to rest where sum(rate * latency^2) is least
(eq. 3). Section 3.1.3: of the k nodes nearest to that place, one that runs an equal operator already is taken, else the
nearest with resources; k grows when there is none. A load dimension moves busy nodes away.

As printed, Figure 7 moves along +F where F points away from the neighbours; here against it, and scaled by the sum of
the rates, without which fast streams diverge.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from towpath.errors import Mistake, PlannerError
from towpath.placement.flows import flows, fragment_loads, fragment_states, results
from towpath.placement.index import Floats, Ints, index, latencies
from towpath.placement.problem import EVERYWHERE, Placement, Problem
from towpath.placement.vivaldi import embed

OBJECTIVE = "sbon.network_usage"
KB_MS = 1.0  # a force of 1 kB/s * ms, in B/s * s
MOST_STEPS = 10_000


@dataclass(frozen=True)
class Options:
    step: float = 0.1  # delta: how far a body follows the force, of the sum of its rates
    force: float = 1.0  # F_t, in kB/s * ms: below it a body is at rest
    nearest: int = 10  # k
    load_scale: float = 0.1  # seconds of distance that a fully loaded node is moved away by
    rounds: int = 400  # of measurements for the coordinates of nodes, at most; few nodes need fewer
    seed: int = 0


def plan(problem: Problem, options: Options) -> Placement:
    space = _Space(problem, options)
    targets = _at_rest(problem, space.points, options)
    return _Mapping(problem, space, options).place(targets)


class _Space:
    """The cost space: three latency dimensions, and one of load that changes as fragments are placed."""

    def __init__(self, problem: Problem, options: Options) -> None:
        nodes = problem.cluster.nodes
        rounds = min(options.rounds, 50 + 5 * len(nodes))
        found = embed(lambda a, b: latencies(problem.cluster, a, b), len(nodes), rounds, options.seed)
        self.points = found.points
        self.cpu = np.array([node.cpu for node in nodes])
        self.memory = np.array([node.memory for node in nodes])
        self.busy = np.zeros(len(nodes))
        self._scale = options.load_scale
        self._able = np.flatnonzero(self.cpu > 0)
        self._tree = cKDTree(found.points[self._able]) if len(self._able) else None

    def nearest(self, target: Floats, first: int) -> Iterator[int]:
        """Nodes by their distance to a place at no load; more and more are asked for."""
        given: set[int] = set()
        k, count = max(first, 1), len(self._able)
        while self._tree is not None and len(given) < count:
            k = min(k, count)
            away, found = self._tree.query(target, k=[*range(1, k + 1)])
            nodes = self._able[found]
            distance = np.hypot(away, self._scale * self.busy[nodes] / self.cpu[nodes])
            # Behind the last one there may be nodes that are as near and have less to do.
            reach = away[-1] if k < count else np.inf
            for n in np.argsort(distance, kind="stable").tolist():
                if distance[n] <= reach and (node := int(nodes[n])) not in given:
                    given.add(node)
                    yield node
            k *= 2


def _at_rest(problem: Problem, points: Floats, options: Options) -> Floats:
    """Where each fragment comes to rest between the streams and sinks that pull at it."""
    position = problem.cluster.position
    fragment = index(problem).fragment
    bodies = _now(problem, points)
    springs = _springs(problem)
    if not springs:
        return bodies
    ends = np.array([[fragment[a], fragment.get(b, -1)] for a, b, _, _ in springs])
    anchors = np.array([points[position[at]] if at else np.zeros(points.shape[1]) for _, _, at, _ in springs])
    rates = np.array([rate for *_, rate in springs])
    held = np.flatnonzero(ends[:, 1] < 0)
    free = np.flatnonzero(ends[:, 1] >= 0)
    pull = np.zeros(len(fragment))
    np.add.at(pull, ends[:, 0], rates)
    np.add.at(pull, ends[free, 1], rates[free])
    _begin_between_anchors(bodies, ends[held, 0], anchors[held], rates[held])
    fixed = _pinned(problem, points, bodies)
    for _ in range(MOST_STEPS):
        force = np.zeros_like(bodies)
        np.add.at(force, ends[held, 0], (bodies[ends[held, 0]] - anchors[held]) * rates[held, None])
        away = (bodies[ends[free, 0]] - bodies[ends[free, 1]]) * rates[free, None]
        np.add.at(force, ends[free, 0], away)
        np.add.at(force, ends[free, 1], -away)
        force[fixed] = 0.0
        if np.linalg.norm(force, axis=1).max() < options.force * KB_MS:
            break
        bodies -= options.step * force / np.maximum(pull, 1e-300)[:, None]
    return bodies


def _now(problem: Problem, points: Floats) -> Floats:
    """Where fragments are; what nothing pulls at stays there."""
    position, current = problem.cluster.position, problem.current
    bodies = np.zeros((len(problem.fragments), points.shape[1]))
    if current is not None:
        for n, fragment in enumerate(problem.fragments):
            nodes = [node for node in current.nodes.get(fragment.name, ()) if node in position]
            bodies[n] = points[position[nodes[0]]] if nodes else 0.0
    return bodies


def _springs(problem: Problem) -> list[tuple[str, str, str, float]]:
    """(fragment, other fragment or nothing, node of a stream or sink or nothing, bytes per second)."""
    found = []
    for flow in flows(problem):
        stream = problem.stream.get(flow.producer)
        if stream is None:
            found.append((flow.consumer, problem.home[flow.producer], "", flow.bytes))
        elif stream.node != EVERYWHERE:
            found.append((flow.consumer, "", stream.node, flow.bytes))
    columns = index(problem)
    sizes = dict(zip(columns.points, columns.bytes_out.tolist(), strict=True))
    for query, operators in results(problem).items():
        sink = problem.query[query].sink
        if sink is not None:
            found += [(problem.home[o], "", sink, sizes[o]) for o in operators]
    return found


def _begin_between_anchors(bodies: Floats, of: Ints, anchors: Floats, rates: Floats) -> None:
    total, weight = np.zeros_like(bodies), np.zeros(len(bodies))
    np.add.at(total, of, anchors * rates[:, None])
    np.add.at(weight, of, rates)
    held = weight > 0
    bodies[held] = total[held] / weight[held, None]


def _pinned(problem: Problem, points: Floats, bodies: Floats) -> list[int]:
    fragment, position = index(problem).fragment, problem.cluster.position
    for name, node in problem.pinned.items():
        bodies[fragment[name]] = points[position[node]]
    return [fragment[name] for name in problem.pinned]


class _Mapping:
    """From places in the cost space to nodes."""

    def __init__(self, problem: Problem, space: _Space, options: Options) -> None:
        self._problem = problem
        self._space = space
        self._options = options
        self._work, self._state = fragment_loads(problem), fragment_states(problem)
        self._used = np.zeros(len(problem.cluster.nodes))
        self._running: dict[tuple[str, ...], set[int]] = {}  # by the signatures of a fragment's operators

    def place(self, targets: Floats) -> Placement:
        nodes, placed = self._problem.cluster.nodes, {}
        for n, fragment in enumerate(self._problem.fragments):
            copies = self._problem.query[fragment.query].copies
            pinned = self._problem.pinned.get(fragment.name)
            if pinned is not None:
                chosen = [self._problem.cluster.position[pinned]]
            else:
                chosen = self._choose(fragment.name, self._signature(n), targets[n], copies)
            for node in chosen:
                self._take(n, node)
            placed[fragment.name] = tuple(nodes[node].name for node in chosen)
        return Placement(placed)

    def _choose(self, name: str, signature: tuple[str, ...], target: Floats, copies: int) -> list[int]:
        near, k, running = [], self._options.nearest, self._running.get(signature, set())
        roomy: list[int] = []
        for node in self._space.nearest(target, k):
            near.append(node)
            if self._fits(name, node) or node in running:
                roomy.append(node)
            if len(near) >= k and len(roomy) >= copies:
                break
        if len(near) < copies:
            mistake = Mistake(name, f"{copies} copies need as many nodes, but {len(near)} can run it", "add nodes")
            raise PlannerError("the planner relaxation finds no placement", [mistake])
        # One that runs the operator already comes first; where nothing has room the nearest is the least bad.
        again = [node for node in near[:k] if node in running]
        return list(dict.fromkeys([*again, *roomy, *near]))[:copies]

    def _fits(self, name: str, node: int) -> bool:
        cpu = self._space.busy[node] + self._work[name] <= self._space.cpu[node]
        return bool(cpu and self._used[node] + self._state[name] <= self._space.memory[node])

    def _signature(self, n: int) -> tuple[str, ...]:
        signatures = [operator.signature for operator in self._problem.fragments[n].operators]
        return tuple(s for s in signatures if s is not None) if None not in signatures else ()

    def _take(self, n: int, node: int) -> None:
        name, signature = self._problem.fragments[n].name, self._signature(n)
        if signature and node in self._running.get(signature, ()):
            return
        self._space.busy[node] += self._work[name]
        self._used[node] += self._state[name]
        if signature:
            self._running.setdefault(signature, set()).add(node)
