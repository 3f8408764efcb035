"""A problem as the tables of the data plane."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from towpath.lab.sim import tables
from towpath.lab.sim.dice import EXPONENTIAL, FIXED, UNIFORM, seed_of
from towpath.lab.sim.sources import Profiles, profile_of
from towpath.lab.sim.tables import FOREVER, NOBODY, Array, Tables, records
from towpath.placement.index import Floats, Index, bandwidths, index, latencies, levels
from towpath.placement.problem import Operator, Placement, Problem

Service = Literal["fixed", "exponential", "uniform"]  # distributions of the work of an operator around its cost
Services = Service | Mapping[str, Service]  # of all operators, or by operator; one that is not named has fixed work


@dataclass(frozen=True)
class StatefulJoin:
    """A join whose cost follows from its state (eq. 3.3 of D-CAPE), and not from its stated cost.

    What is too old for the other side is dropped when the other side moves on in event time. So the state grows when
    one side lags behind the other.
    """

    window: float  # seconds
    work: float  # seconds for a tuple, whatever the state
    pair_cost: float  # seconds to compare a tuple with one of the other side
    purge_cost: float  # seconds for each tuple of the state when a tuple comes

    @property
    def bucket(self) -> float:
        return self.window / BUCKETS


Joins = Mapping[str, StatefulJoin]  # by operator
NO_JOINS: Joins = {}
BUCKETS = 20  # of a window: the state is dropped a twentieth of a window at a time

_SERVICES = {"fixed": FIXED, "exponential": EXPONENTIAL, "uniform": UNIFORM}
_PARCELS = 4096  # to begin with; the tables grow


def encode(
    problem: Problem,
    placement: Placement,
    profile: Profiles,
    service: Services,
    seed: int,
    joins: Joins,
    seconds: float,
) -> Tables:
    columns = index(problem)
    operators, children = _operators(columns, service, seed)
    points, readers = _points(columns)
    streams, segments = _streams(problem, profile, seed)
    queries, paths = _queries(columns)
    places = _places(problem, placement)
    operators.join[[columns.point[name] - columns.streams for name in joins]] = np.arange(len(joins))
    sides = len(joins), places.shape[1], 2
    buckets = max((int(seconds / join.bucket) + 2 for join in joins.values()), default=0)
    nodes = len(problem.cluster.nodes)
    shared = int(operators.shared.max(initial=NOBODY)) + 1
    made = Tables(
        clock=records(tables.CLOCK, 1),
        nodes=_nodes(problem),
        links=_links(problem),
        points=points,
        readers=readers,
        streams=streams,
        segments=segments,
        operators=operators,
        children=children,
        joins=_joins(columns, joins),
        sides=records(tables.SIDE, *sides),
        buckets=np.zeros((*sides, buckets), np.int64),
        places=places,
        counts=records(tables.COUNT, len(operators), places.shape[1]),
        queries=queries,
        paths=paths,
        parcels=records(tables.PARCEL, 0),
        events=records(tables.EVENT, 0),
        stack=records(tables.STACKED, len(operators) + 1),
        marks=np.zeros(nodes, np.int64),
        seen=np.zeros((shared, nodes), np.uint64),
        sent=np.zeros((shared, nodes), np.uint64),
        reports=np.zeros(len(problem.fragments) + 1, np.int64),
    )
    made.clock[0].room = _room(columns, points, places.shape[1])
    made.clock[0].free = NOBODY
    made.clock[0].medium = problem.cluster.network.medium
    return grown(made, max(_PARCELS, 2 * int(made.clock[0].room)))


def grown(t: Tables, more: int) -> Tables:
    """With room for more parcels and events."""
    clock = t.clock[0]
    before = len(t.parcels)
    parcels = records(tables.PARCEL, before + more)
    parcels[:before] = t.parcels
    parcels.next[before:] = np.arange(before + 1, before + more + 1)
    parcels.next[-1] = clock.free
    clock.free = before
    clock.unused += more
    events = records(tables.EVENT, len(parcels) + len(t.streams) + len(t.nodes))
    events[: len(t.events)] = t.events
    return t._replace(parcels=parcels, events=events)


def bytes_in(columns: Index) -> Floats:
    """Bytes per second that each operator reads, at the rates that the problem states."""
    return np.bincount(columns.readers, columns.bytes_out[columns.inputs], len(columns.operators)).astype(np.float64)


def _room(columns: Index, points: Array, places: int) -> int:
    """The most parcels that one event makes: all that a fragment emits, to all who read it, and one held."""
    sent = (points.end_reader - points.first_reader) * places + 2
    of_fragments = columns.by_fragment(sent[columns.streams :].astype(float))
    return int(max(sent.max(initial=0), of_fragments.max(initial=0))) + 8


def _nodes(problem: Problem) -> Array:
    made = records(tables.NODE, len(problem.cluster.nodes))
    for n, node in enumerate(problem.cluster.nodes):
        made[n].cpu, made[n].transfer_cost, made[n].alive = node.cpu, node.transfer_cost, 1
        made[n].bandwidth_in, made[n].bandwidth_out = node.bandwidth_in, node.bandwidth_out
    for name in ("first", "last", "made_first", "made_last", "errand"):
        made[name] = NOBODY
    return made


def _links(problem: Problem) -> Array:
    count = len(problem.cluster.nodes)
    sources, targets = (side.ravel() for side in np.indices((count, count)))
    made = records(tables.LINK, count, count)
    made.bandwidth = bandwidths(problem.cluster, sources, targets).reshape(count, count)
    # A pair whose latency nobody knows is as slow as the slowest that is known.
    known = latencies(problem.cluster, sources, targets)
    made.latency = np.nan_to_num(known, nan=np.nanmax(known, initial=0.0)).reshape(count, count)
    made.up = 1
    return made


def _points(columns: Index) -> tuple[Array, Array]:
    """Readers are listed only for other fragments than the point's own: within one, operators are children."""
    points = records(tables.POINT, len(columns.points))
    points.bytes = columns.tuple_bytes
    home = np.concatenate([np.full(columns.streams, NOBODY), columns.home])
    outside = home[columns.inputs] != columns.home[columns.readers]
    inputs, operators = columns.inputs[outside], columns.readers[outside]
    order = np.argsort(inputs, kind="stable")
    readers = records(tables.READER, len(order))
    readers.operator = operators[order]
    readers.fragment = columns.home[readers.operator]
    points.first_reader = np.searchsorted(inputs[order], np.arange(len(points)))
    points.end_reader = np.searchsorted(inputs[order], np.arange(len(points)), side="right")
    return points, readers


def _operators(columns: Index, service: Services, seed: int) -> tuple[Array, Array]:
    made = records(tables.OPERATOR, len(columns.operators))
    made.fragment, made.cost, made.state_bytes = columns.home, columns.cost, columns.state_bytes
    made.whole = np.floor(columns.selectivity)
    made.part = columns.selectivity - np.floor(columns.selectivity)
    made.seed = np.array([seed_of(_identity(o), seed) for o in columns.operators], np.uint64)
    made.service = [_SERVICES[_service_of(service, o.name)] for o in columns.operators]
    made.shared = _shared(columns.operators)
    made.query = made.join = NOBODY
    position = {q.name: n for n, q in enumerate(columns.problem.queries)}
    for o in columns.results[0]:
        made[o].query = position[columns.problem.fragments[columns.home[o]].query]
    within = columns.inputs >= columns.streams
    sources, readers = columns.inputs[within] - columns.streams, columns.readers[within]
    same = columns.home[sources] == columns.home[readers]
    sources, readers = sources[same], readers[same]
    order = np.argsort(sources, kind="stable")
    made.first_child = np.searchsorted(sources[order], np.arange(len(made)))
    made.end_child = np.searchsorted(sources[order], np.arange(len(made)), side="right")
    return made, np.ascontiguousarray(readers[order], np.int64)


def _joins(columns: Index, joins: Joins) -> Array:
    made = records(tables.JOIN, len(joins))
    for row, (name, join) in zip(made, joins.items(), strict=True):
        row.left = columns.inputs[columns.first_input[columns.point[name] - columns.streams]]
        row.window, row.bucket = join.window, join.bucket
        row.work, row.pair, row.purge = join.work, join.pair_cost, join.purge_cost
    return made


def _identity(operator: Operator) -> str:
    return f"operator {operator.name}" if operator.signature is None else f"signature {operator.signature}"


def _service_of(service: Services, operator: str) -> Service:
    return service if isinstance(service, str) else service.get(operator, "fixed")


def _shared(operators: tuple[Operator, ...]) -> list[int]:
    """A number for each signature that several operators have."""
    uses = Counter(o.signature for o in operators if o.signature is not None)
    several = [signature for signature, number in uses.items() if number > 1]
    number = {signature: n for n, signature in enumerate(several)}
    return [NOBODY if o.signature is None else number.get(o.signature, NOBODY) for o in operators]


def _streams(problem: Problem, profiles: Profiles, seed: int) -> tuple[Array, Array]:
    made = records(tables.STREAM, len(problem.streams))
    segments: list[tuple[float, float]] = []
    for s, stream in enumerate(problem.streams):
        profile = profile_of(profiles, stream.name)
        row = made[s]
        row.node, row.rate = problem.cluster.position[stream.node], stream.rate
        row.seed = seed_of(f"stream {stream.name}", seed)
        row.poisson = EXPONENTIAL if profile.arrivals == "poisson" else FIXED
        row.segment = len(segments)
        segments += profile.segments()
        row.end_segment = len(segments)
    table = records(tables.SEGMENT, len(segments))
    for n, (factor, until) in enumerate(segments):
        table[n].factor, table[n].until = factor, until
    return made, table


def _queries(columns: Index) -> tuple[Array, Array]:
    """The paths of a query are the streams from which its results come."""
    problem = columns.problem
    made = records(tables.QUERY, len(problem.queries))
    origins = _origins(columns)
    streams_of: dict[str, dict[int, None]] = {q.name: {} for q in problem.queries}
    for o in columns.results[0]:
        streams_of[problem.fragments[columns.home[o]].query].update(origins[columns.streams + o])
    paths = records(tables.PATH, sum(map(len, streams_of.values())))
    at = 0
    for q, query in enumerate(problem.queries):
        made[q].sink = NOBODY if query.sink is None else problem.cluster.position[query.sink]
        made[q].first_path = at
        for stream in streams_of[query.name]:
            paths[at].stream = stream
            at += 1
        made[q].end_path = at
    return made, paths


def _origins(columns: Index) -> list[dict[int, None]]:
    """The streams from which each point is made."""
    found: list[dict[int, None]] = [{n: None} for n in range(columns.streams)]
    found += [{} for _ in columns.operators]
    for level in levels(columns.inputs - columns.streams, columns.readers, len(columns.operators)):
        for o in level:
            for source in columns.inputs[columns.first_input[o] : columns.first_input[o + 1]]:
                found[columns.streams + o].update(found[source])
    return found


def _places(problem: Problem, placement: Placement) -> Array:
    """Copy c of a fragment is at place 2c or 2c + 1."""
    copies = max((len(nodes) for nodes in placement.nodes.values()), default=1)
    made = records(tables.PLACE, len(problem.fragments), 2 * max(copies, 1))
    made.node = made.first = made.last = NOBODY
    made.until = FOREVER
    position = {f.name: n for n, f in enumerate(problem.fragments)}
    for name, nodes in placement.nodes.items():
        for copy, node in enumerate(nodes):
            made[position[name], 2 * copy].node = problem.cluster.position[node]
    return made
