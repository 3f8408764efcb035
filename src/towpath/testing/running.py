"""Runs a workload on real Spark, phase by phase, and compares every query with the batch answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from towpath.api import Towpath, start
from towpath.control.fence import Step
from towpath.errors import MoveRefused
from towpath.job import Job, QueryDef, ResultsDef
from towpath.lang import parse
from towpath.nodes import EmbeddedNode, NodeDef
from towpath.plan.cut import WHOLE
from towpath.streams.definition import StreamDef
from towpath.streams.sources import FilesSource
from towpath.testing.files import write_file
from towpath.testing.workload import Workload
from towpath.verify import Difference, answers, differences, expected

EMBEDDED = EmbeddedNode.model_validate({"type": "embedded", "cores": 2, "memory": "2g"})
ONE: Mapping[str, NodeDef] = {"local": EMBEDDED}
TWO: Mapping[str, NodeDef] = {"local": EMBEDDED, "other": EMBEDDED}

Disturb = Callable[[Towpath, int], None]


@dataclass(frozen=True)
class Outcome:
    """What became of every query of a workload."""

    differences: dict[str, Difference]
    taken_back: dict[str, Difference]  # what was shown at some time, and is not among the results in the end
    sinks: dict[str, Difference]  # what a sink has and the results have not, or the other way round
    validity: dict[str, str]  # queries that answer for other event times than they were asked to
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
        format_ = workload.recording.formats.get(name, "parquet")
        source = FilesSource.model_validate({"type": "files", "path": str(folder / name), "format": format_})
        streams[name] = StreamDef(stream, source, idle_after_ms=0)
    first = {
        name: {"sql": q.sql, "copies": copies, "sink": sink_of(folder, name) if q.sink else None}
        for name, q in workload.queries.items()
        if q.submit == 0
    }
    early = {name: QueryDef.model_validate(query) for name, query in first.items()}
    results = ResultsDef.model_validate({})
    return Job(folder / "store", 50, streams, dict(nodes), early, None, results, fragments=fragments)


def sink_of(folder: Path, query: str) -> dict[str, str]:
    return {"type": "parquet", "path": str(folder / "sinks" / query)}


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
    shown: dict[str, list[pa.Table]] = {name: [] for name in workload.queries}
    with start(job_of(workload, folder, nodes, copies, fragments)) as running:
        for phase in range(len(workload.recording.chunks)):
            if phase:
                change_queries(running, workload, phase, folder, copies)
                move_queries(running, list(nodes), phase)
            arrive(workload, folder, phase)
            disturb(running, phase)
            settle(running)
            look(running, workload, phase, shown)
        running.drain()
        return compare(running, workload, folder, shown)


def look(running: Towpath, workload: Workload, phase: int, shown: dict[str, list[pa.Table]]) -> None:
    """What a reader is given now must not be denied later on."""
    for name, query in workload.queries.items():
        if query.submit <= phase:
            shown[name].append(running.results(name))


def change_queries(running: Towpath, workload: Workload, phase: int, folder: Path, copies: int = 1) -> None:
    for name, query in workload.queries.items():
        if query.submit == phase:
            sink = sink_of(folder, name) if query.sink else None
            running.submit(name, query.sql, copies=min(copies, answering(running)), sink=sink)
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
    """The chunks of a phase appear, each file in one step, as a careful producer does it."""
    for name in workload.recording.catalog:
        for file, rows in workload.recording.pieces(phase, name):
            write_file(rows, folder / name / file)


def settle(running: Towpath) -> None:
    running.engine.settle()
    running.poll()


def compare(running: Towpath, workload: Workload, folder: Path, shown: Mapping[str, Sequence[pa.Table]]) -> Outcome:
    database, catalog = workload.database(), workload.recording.catalog
    found: dict[str, Difference] = {}
    denied: dict[str, Difference] = {}
    sinks: dict[str, Difference] = {}
    odd: dict[str, str] = {}
    rows = 0
    for name, submission in workload.queries.items():
        actual = running.results(name)
        rows += actual.num_rows
        if difference := differences(answers(database, catalog, running.engine.versions(name)), actual):
            found[name] = difference
        # Without a look at what the system says of itself: it stood from the beginning to the end.
        if submission.submit == 0 and submission.withdraw is None:
            query, validity = parse(submission.sql, catalog, name), running.engine.validity(name)
            if difference := differences(expected(database, query, catalog), actual):
                found.setdefault(name, difference)
            if any((valid.from_us, valid.until_us) != (None, None) for valid in validity):
                odd[name] = str(validity)
        for before in shown[name]:
            if (difference := differences(before, actual)) and difference.missing:
                denied[name] = difference
        if submission.sink and (difference := differences(actual, _sunk(folder, name, actual.schema))):
            sinks[name] = difference
    carriers = running.engine.carriers
    passed = [m for m in running.engine.controller.state.moves.values() if m.step in (Step.DRAINING, Step.DONE)]
    late = sum(sum(c.late_rows.values()) for c in carriers)
    return Outcome(found, denied, sinks, odd, rows, len(carriers), late, len(passed))


def _sunk(folder: Path, query: str, schema: pa.Schema) -> pa.Table:
    files = sorted((folder / "sinks" / query).glob("[!.]*.parquet"))
    return pa.concat_tables([schema.empty_table(), *(pq.read_table(file).cast(schema) for file in files)])
