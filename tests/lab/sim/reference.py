"""The data plane once more: slow, with objects and a heap, and written to be obviously right. No moves, no faults."""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import count

from towpath.placement.flows import results
from towpath.placement.problem import Operator, Placement, PlacementStream, Problem

BITS = 2**64 - 1


def mix(key: int, counter: int) -> int:
    """SplitMix64."""
    z = (key + (counter + 1) * 0x9E3779B97F4A7C15) & BITS
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & BITS
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & BITS
    return z ^ (z >> 31)


def unit(key: int) -> float:
    return (key >> 11) * 2.0**-53


def exponential(key: int) -> float:
    return -math.log(1.0 - unit(key))


def seed_of(name: str, seed: int) -> int:
    return int.from_bytes(blake2b(f"{seed}/{name}".encode(), digest_size=8).digest(), "little")


def seed_of_operator(operator: Operator, seed: int) -> int:
    named = f"operator {operator.name}" if operator.signature is None else f"signature {operator.signature}"
    return seed_of(named, seed)


def emitted(operator: Operator, key: int, tuples: int) -> int:
    """`key` is that of the operator's output."""
    whole = math.floor(operator.selectivity)
    lucky = (unit(mix(key, 1 + 4 * i)) < operator.selectivity - whole for i in range(tuples))
    return whole * tuples + sum(lucky)


@dataclass
class Parcel:
    point: str
    key: int
    tuples: int
    stream: str
    born: float
    work: float = 0.0
    readers: deque[Operator] = field(default_factory=deque)  # on its node


class Reference:
    def __init__(
        self, problem: Problem, placement: Placement, seconds: float, seed: int, poisson: bool, exponential: bool
    ) -> None:
        self.problem, self.seconds, self.seed = problem, seconds, seed
        self.poisson, self.exponential = poisson, exponential
        self.node_of = {o.name: placement.nodes[f.name][0] for f in problem.fragments for o in f.operators}
        self.query_of = {o: query for query, operators in results(problem).items() for o in operators}
        self.cpu = {n.name: n.cpu for n in problem.cluster.nodes}
        self.queue: dict[str, deque[Parcel]] = defaultdict(deque)
        self.serving = dict.fromkeys(self.cpu, False)
        self.link_free: Counter[tuple[str, str]] = Counter()
        self.seen: dict[tuple[str, str], int] = {}
        self.taken: Counter[str] = Counter()
        self.given: Counter[str] = Counter()
        self.busy: Counter[str] = Counter()
        self.bytes: Counter[tuple[str, str]] = Counter()
        self.delays: dict[tuple[str, str], list[float]] = defaultdict(list)
        self.ratios: dict[tuple[str, str], list[float]] = defaultdict(list)
        self.heap: list = []
        self.order = count()
        for stream in problem.streams:
            key = mix(seed_of(f"stream {stream.name}", seed), 2**63)
            self.at((exponential_or(key, poisson, unit(key))) / stream.rate, self.enter, stream, 0)

    def at(self, time: float, action, *arguments) -> None:
        heapq.heappush(self.heap, (time, next(self.order), action, arguments))

    def run(self) -> Reference:
        while self.heap and self.heap[0][0] < self.seconds:
            time, _, action, arguments = heapq.heappop(self.heap)
            action(time, *arguments)
        return self

    def enter(self, time: float, stream: PlacementStream, number: int) -> None:
        key = mix(seed_of(f"stream {stream.name}", self.seed), number)
        gap = exponential_or(mix(key, 3), self.poisson, 1.0)
        self.at(time + gap / stream.rate, self.enter, stream, number + 1)
        here = self.hand_out(time, stream.node, Parcel(stream.name, key, 1, stream.name, time))
        if here.readers:
            self.arrive(time, stream.node, here)

    def hand_out(self, time: float, node: str, parcel: Parcel) -> Parcel:
        """Sends a parcel to the other nodes that read it; the rest is for this node."""
        home = self.problem.home.get(parcel.point)
        readers = defaultdict(deque)
        for operator in self.problem.operators():
            if parcel.point in operator.inputs and self.problem.home[operator.name] != home:
                readers[self.node_of[operator.name]].append(operator)
        made = self.problem.operator.get(parcel.point) or self.problem.stream[parcel.point]
        size = parcel.tuples * made.tuple_bytes
        for target, operators in readers.items():
            if target != node:
                start = max(self.link_free[node, target], time)
                self.link_free[node, target] = start + size / self.problem.cluster.bandwidth(node, target)
                self.bytes[node, target] += size
                arrives = self.link_free[node, target] + self.problem.cluster.latency(node, target)
                self.at(arrives, self.arrive, target, replace(parcel, readers=operators))
        return replace(parcel, readers=readers[node])

    def arrive(self, time: float, node: str, parcel: Parcel) -> None:
        self.queue[node].append(parcel)
        if not self.serving[node]:
            self.serve(time, node)

    def serve(self, time: float, node: str) -> None:
        self.serving[node] = False
        while self.queue[node]:
            parcel = self.queue[node][0]
            if not parcel.readers:
                self.queue[node].popleft()
                continue
            made: list[Parcel] = []
            seconds = self.execute(node, parcel.readers.popleft(), parcel, made) / self.cpu[node]
            self.busy[node] += seconds
            self.serving[node] = True
            self.at(time + seconds, self.finish, node, made)
            return

    def execute(self, node: str, operator: Operator, parcel: Parcel, made: list[Parcel]) -> float:
        key = mix(parcel.key, seed_of_operator(operator, self.seed))
        tuples, out = parcel.tuples, emitted(operator, key, parcel.tuples)
        draws = (exponential_or(mix(key, 2 + 4 * i), self.exponential, 1.0) for i in range(tuples))
        work = sum(operator.cost * draw for draw in draws)
        self.taken[operator.name] += tuples
        self.given[operator.name] += out
        paid = 0.0 if operator.signature and self.seen.get((node, operator.signature)) == key else work
        if operator.signature:
            self.seen[node, operator.signature] = key
        if out:
            result = Parcel(operator.name, key, out, parcel.stream, parcel.born, parcel.work + work / self.cpu[node])
            made.append(result)
            fragment = self.problem.fragment[self.problem.home[operator.name]]
            inner = [o for o in fragment.operators if operator.name in o.inputs]
            paid += sum(self.execute(node, o, result, made) for o in inner)
        return paid

    def finish(self, time: float, node: str, made: list[Parcel]) -> None:
        local = []
        for parcel in made:
            if parcel.point in self.query_of:
                path = self.query_of[parcel.point], parcel.stream
                self.delays[path].append(time - parcel.born)
                self.ratios[path].append((time - parcel.born) / parcel.work)
            local.append(self.hand_out(time, node, parcel))
        self.queue[node].extendleft(reversed([p for p in local if p.readers]))
        self.serve(time, node)


def exponential_or(key: int, wanted: bool, otherwise: float) -> float:
    return exponential(key) if wanted else otherwise
