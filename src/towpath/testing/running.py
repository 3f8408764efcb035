"""Runs a workload on real Spark, phase by phase, and compares every query with the batch answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from towpath.api import Towpath, start
from towpath.control.fence import Step
from towpath.errors import MoveRefused
from towpath.job import Job, QueryDef, ResultsDef
from towpath.nodes import EmbeddedNode, NodeDef
from towpath.plan.cut import WHOLE
from towpath.streams.definition import StreamDef
from towpath.streams.sources import FilesSource
from towpath.testing.workload import Workload
from towpath.verify import Difference, answers, differences

EMBEDDED = EmbeddedNode.model_validate({"type": "embedded", "cores": 2, "memory": "2g"})
ONE: Mapping[str, NodeDef] = {"local": EMBEDDED}
TWO: Mapping[str, NodeDef] = {"local": EMBEDDED, "other": EMBEDDED}

Disturb = Callable[[Towpath, int], None]


@dataclass(frozen=True)
class Outcome:
    """What became of every query of a workload."""

    differences: dict[str, Difference]
    rows: int  # results of all queries
    carriers: int
    late: int
    moves: int  # that passed their fence


def job_of(
    workload: Workload,
    folder: Path,
    nodes: Mapping[str, NodeDef] = ONE,
    copies: int = 1,
    fragments: str = WHOLE,
) -> Job:
    """A job over empty folders, one for each stream, with the queries that are there from the beginning."""
    streams = {}
    for name, stream in workload.recording.catalog.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        source = FilesSource(type="files", path=str(folder / name), format="parquet")
        streams[name] = StreamDef(stream, source, idle_after_ms=0)
    first = {name: {"sql": q.sql, "copies": copies} for name, q in workload.queries.items() if q.submit == 0}
    early = {name: QueryDef.model_validate(query) for name, query in first.items()}
    results = ResultsDef.model_validate({})
    return Job(folder / "store", 50, streams, dict(nodes), early, None, results, fragments=fragments)


def undisturbed(running: Towpath, phase: int) -> None: ...


def run(
    workload: Workload,
    folder: Path,
    nodes: Mapping[str, NodeDef] = ONE,
    disturb: Disturb = undisturbed,
    copies: int = 1,
    fragments: str = WHOLE,
) -> Outcome:
    """With several nodes, queries are sent back and forth between them all the time.

    `disturb` is called when the tuples of a phase have arrived and nobody has waited for their results yet.
    """
    with start(job_of(workload, folder, nodes, copies, fragments)) as running:
        for phase in range(len(workload.recording.chunks)):
            if phase:
                change_queries(running, workload, phase, copies)
                move_queries(running, list(nodes), phase)
            arrive(workload, folder, phase)
            disturb(running, phase)
            settle(running)
        running.drain()
        return compare(running, workload)


def change_queries(running: Towpath, workload: Workload, phase: int, copies: int = 1) -> None:
    for name, query in workload.queries.items():
        if query.submit == phase:
            running.submit(name, query.sql, copies=min(copies, answering(running)))
        if query.withdraw == phase:
            running.withdraw(name)


def answering(running: Towpath) -> int:
    controller = running.engine.controller
    return len(controller.nodes) - len(controller.lost_nodes)


def move_queries(running: Towpath, nodes: Sequence[str], phase: int) -> None:
    """Every other query sets off for another node; those that cannot move now do not."""
    for number, name in enumerate(sorted(running.engine.controller.running_names)):
        if len(nodes) > 1 and (number + phase) % 2:
            with suppress(MoveRefused):
                running.move(name, nodes[(number + phase) // 2 % len(nodes)])


def arrive(workload: Workload, folder: Path, phase: int) -> None:
    """The chunks of a phase appear, each in one step, as a careful producer does it."""
    for name, chunk in workload.recording.chunks[phase].items():
        scratch = folder / name / f".{phase}.tmp"
        pq.write_table(chunk, scratch)
        scratch.rename(folder / name / f"{phase:03}.parquet")


def settle(running: Towpath) -> None:
    running.engine.settle()
    running.poll()


def compare(running: Towpath, workload: Workload) -> Outcome:
    database, catalog = workload.database(), workload.recording.catalog
    found: dict[str, Difference] = {}
    rows = 0
    for name in workload.queries:
        actual = running.results(name)
        rows += actual.num_rows
        difference = differences(answers(database, catalog, running.engine.versions(name)), actual)
        if difference is not None:
            found[name] = difference
    carriers = running.engine.carriers
    passed = [m for m in running.engine.controller.state.moves.values() if m.step in (Step.DRAINING, Step.DONE)]
    return Outcome(found, rows, len(carriers), sum(sum(c.late_rows.values()) for c in carriers), len(passed))
