"""The thesis' plans as standing queries: groups of queries, each over a join of two streams of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from towpath import planners
from towpath.config.nodes import NodeDef
from towpath.config.steering import ControlDef
from towpath.job import Job, QueryDef, ResultsDef
from towpath.placement.cluster import Cluster, Node
from towpath.placement.problem import Fragment, Operator, PlacementQuery, PlacementStream, Problem
from towpath.schema import Column, Type
from towpath.schema import Stream as StreamSchema
from towpath.store import durable
from towpath.streams.definition import StreamDef
from towpath.streams.sources import FilesSource

SECOND_US = 1_000_000
BEGIN_US = 1_700_000_000 * SECOND_US
SIDES = ("left", "right")
SHARE = 0.1  # of what a query reads passes its filter, for the least selective query of a group


@dataclass(frozen=True)
class LivePlan:
    """Queries of a group filter the pairs of one join; groups have nothing in common."""

    groups: int = 6
    queries: int = 6  # of a group
    rate: int = 1000  # tuples per second of event time, of each stream
    window_s: int = 10
    matches: float = 2.0  # pairs per tuple: the thesis' join selectivity
    chunk_s: int = 10  # event time that arrives at once
    cheap: int = 0  # groups that only filter a stream and join nothing: the thesis' single-stream operators

    @property
    def chunk_rows(self) -> int:
        """Of all streams."""
        return (len(SIDES) * self.groups + self.cheap) * self.rate * self.chunk_s

    def streams(self) -> list[tuple[str, str, str]]:
        """Name, key column and value column. No two have equal columns: Spark reads each by itself."""
        joined = [(f"{side}{g}", f"k{g}", f"{side[0]}{g}") for g in range(self.groups) for side in SIDES]
        return joined + [(f"single{g}", f"sk{g}", f"s{g}") for g in range(self.cheap)]

    def sql(self) -> dict[str, str]:
        """Group by group; expensive and cheap ones take turns, as far as there are both."""
        found: dict[str, str] = {}
        for g in range(max(self.groups, self.cheap)):
            for q in range(self.queries):
                least = round(1 - SHARE * (q + 1) / self.queries, 3)
                if g < self.groups:
                    window = f"[RANGE {self.window_s} SECONDS]"
                    found[f"join{g}_{q}"] = (
                        f"SELECT a.k{g} AS k, a.l{g} AS x, b.r{g} AS y FROM left{g} {window} AS a, right{g} {window} "
                        f"AS b WHERE a.k{g} = b.k{g} AND a.l{g} > {least}"
                    )
                if g < self.cheap:
                    found[f"filter{g}_{q}"] = f"SELECT sk{g} AS k, 2 * s{g} AS x FROM single{g} WHERE s{g} > {least}"
        return found


def units(plan: LivePlan, nodes: Sequence[str], planner: str) -> dict[str, str]:
    """On which node each query runs: the unit of placement is a whole query.

    A planner sees what one engine would make of the queries: each group's join once, and the filters above it. A query
    is put where its filter is. Spark runs the join wherever one of its queries is, once for all of them there.
    """
    problem = _problem(plan, nodes)
    placed = planners.run(planner, problem).nodes
    return {name: placed[name][0] for name in plan.sql()}


def _problem(plan: LivePlan, nodes: Sequence[str]) -> Problem:
    """What several queries have in common is a fragment by itself; all else of a query is one fragment."""
    fragments: dict[str, Fragment] = {}
    queries: list[PlacementQuery] = []
    for name in plan.sql():
        group = name.partition("_")[0]
        shared: tuple[Operator, ...] = ()
        own: tuple[Operator, ...]
        if group.startswith("join"):
            number = group.removeprefix("join")
            shared = (Operator(group, tuple(f"{side}{number}" for side in SIDES), "join"),)
            own = (Operator(f"{name}.filter", (group,)),)
        else:
            stream = f"single{group.removeprefix('filter')}"
            own = (Operator(f"{name}.filter", (stream,)), Operator(f"{name}.project", (f"{name}.filter",), "project"))
        mine = [name]
        if plan.queries == 1:
            own = shared + own
        elif shared and group not in fragments:
            fragments[group] = Fragment(group, name, shared)
            mine.insert(0, group)
        fragments[name] = Fragment(name, name, own)
        queries.append(PlacementQuery(name, tuple(mine)))
    streams = tuple(PlacementStream(name, nodes[0], plan.rate) for name, _, _ in plan.streams())
    return Problem(Cluster(tuple(Node(name) for name in nodes)), streams, tuple(fragments.values()), tuple(queries))


def job(
    plan: LivePlan,
    folder: Path,
    nodes: Mapping[str, NodeDef],
    homes: Mapping[str, str],
    trigger_ms: int,
    control: ControlDef | None = None,
) -> Job:
    queries = {name: QueryDef.model_validate({"sql": sql, "node": homes[name]}) for name, sql in plan.sql().items()}
    streams = {name: _stream(folder, name, key, value) for name, key, value in plan.streams()}
    results = ResultsDef.model_validate({})
    return Job(folder / "store", trigger_ms, streams, dict(nodes), queries, None, results, control)


def _stream(folder: Path, name: str, key: str, value: str) -> StreamDef:
    place = folder / "data" / name
    place.mkdir(parents=True)
    columns = (Column(key, Type.BIGINT), Column(value, Type.DOUBLE), Column("at", Type.TIMESTAMP))
    source = FilesSource(type="files", path=str(place), format="parquet")
    return StreamDef(StreamSchema(name, columns, "at"), source, idle_after_ms=0)


class LiveSource:
    """Writes chunks of all streams of a plan into the folder of its job."""

    def __init__(self, plan: LivePlan, folder: Path, seed: int) -> None:
        self.plan = plan
        self.newest_us = BEGIN_US - 1  # event time of all that was written
        self._folder = folder / "data"
        self._rng = np.random.default_rng(seed)
        # So many tuples of the other stream are in reach of a tuple.
        self._keys = max(1, round(2 * plan.rate * plan.window_s / plan.matches))
        self._chunks = 0

    def write(self) -> None:
        plan, rows = self.plan, self.plan.rate * self.plan.chunk_s
        times = BEGIN_US + self._chunks * plan.chunk_s * SECOND_US + np.arange(rows) * SECOND_US // plan.rate
        for name, key, value in plan.streams():
            columns = {
                key: self._rng.integers(0, self._keys, rows),
                value: self._rng.random(rows),
                "at": pa.array(times, pa.timestamp("us", tz="UTC")),
            }
            with durable.writing(self._folder / name / f"{self._chunks:06}.parquet", lasting=False) as scratch:
                pq.write_table(pa.table(columns), scratch)
        self._chunks += 1
        self.newest_us = int(times[-1])
