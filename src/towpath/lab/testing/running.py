"""Runs a workload on real Spark, phase by phase, and compares every query with the batch answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import cycle, pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from towpath.api.running import Towpath, start
from towpath.config.nodes import EmbeddedNode, NodeDef
from towpath.errors import MoveRefused
from towpath.job import Job, QueryDef, ResultsDef
from towpath.lab.testing.comparing import ComparisonOutcome, compare
from towpath.lab.testing.edits import text_in_file
from towpath.lab.testing.files import fields_of, write_file
from towpath.lab.testing.silence import held_back
from towpath.lab.testing.workload import Workload
from towpath.plan import WHOLE, CarrierKinds
from towpath.streams.definition import StreamDef
from towpath.streams.sources import FilesSource
from towpath.tables.definition import FileTable, TableDef

EMBEDDED = EmbeddedNode.model_validate({"type": "embedded", "cores": 2, "memory": "2g"})
ONE: Mapping[str, NodeDef] = {"local": EMBEDDED}
TWO: Mapping[str, NodeDef] = {"local": EMBEDDED, "other": EMBEDDED}

Disturb = Callable[[Towpath, int], None]


def job_of(
    workload: Workload,
    folder: Path,
    nodes: Mapping[str, NodeDef] = ONE,
    copies: int = 1,
    fragments: str = WHOLE,
    phase: int = 0,
    carriers: CarrierKinds = CarrierKinds.COMPILED,
) -> Job:
    """The job as its file has it before a phase, with a folder for each stream."""
    streams = {}
    for name, stream in workload.recording.catalog.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        if workload.added.get(name, 0) > phase:
            continue
        format_ = workload.recording.formats.get(name, "parquet")
        said = {"type": "files", "path": str(folder / name), "format": format_, "fields": fields_of(stream, format_)}
        source = FilesSource.model_validate(said)
        streams[name] = StreamDef(stream, source, idle_after_ms=workload.recording.idle_after_ms)
    first = {
        name: {"sql": sql, "copies": copies, "sink": sink_of(folder, name) if q.sink else None, "from": q.begins}
        for name, q in workload.queries.items()
        if (sql := text_in_file(workload, q, phase)) is not None
    }
    early = {name: QueryDef.model_validate(query) for name, query in first.items()}
    results = ResultsDef.model_validate({})
    where = (folder / "store", 50, streams, dict(nodes))
    tables = {name: table_of(folder, name, workload) for name in workload.recording.tables}
    return Job(*where, early, None, results, fragments=fragments, carriers=carriers, tables=tables)


def table_of(folder: Path, name: str, workload: Workload) -> TableDef:
    """A file of it, and how the job knows it."""
    path = folder / "tables" / f"{name}.parquet"
    path.parent.mkdir(exist_ok=True)
    write_file(workload.recording.tables[name], path)
    table = workload.recording.known[name]
    said = {"type": "file", "path": str(path), "format": "parquet", "fields": fields_of(table, "parquet")}
    return TableDef(table, FileTable.model_validate(said))


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
) -> ComparisonOutcome:
    """With several nodes, queries are sent back and forth between them all the time.

    `disturb` is called when the tuples of a phase have arrived and nobody has waited for their results yet.
    """
    shown: dict[str, list[pa.Table]] = {name: [] for name in workload.queries}
    phases = len(workload.recording.chunks)
    runs = zip(pairwise([0, *workload.restarts, phases]), cycle(workload.carriers), strict=False)
    for (first, end), carriers in runs:
        with start(job_of(workload, folder, nodes, copies, fragments, first, carriers)) as running:
            for phase in range(first, end):
                if phase:
                    change_queries(running, workload, phase, folder, copies)
                    move_queries(running, workload, list(nodes), phase)
                    change_carriers(running, workload, phase)
                arrive(workload, folder, phase)
                disturb(running, phase)
                settle(running)
                look(running, workload, phase, shown)
            if end == phases:
                return finish(running, workload, folder, shown)
    raise AssertionError("unreachable")


def finish(running: Towpath, workload: Workload, folder: Path, shown: dict[str, list[pa.Table]]) -> ComparisonOutcome:
    waiting = held_back(running, workload) if workload.recording.idle_after_ms else {}
    running.drain()
    sinks = {name: sink_rows(folder, name, running) for name, query in workload.queries.items() if query.sink}
    return compare(running, workload, shown, sinks, waiting)


def look(running: Towpath, workload: Workload, phase: int, shown: dict[str, list[pa.Table]]) -> None:
    """What a reader is given now must not be denied later on."""
    for name, query in workload.queries.items():
        if query.submit <= phase:
            shown[name].append(running.results(name))


def change_queries(running: Towpath, workload: Workload, phase: int, folder: Path, copies: int = 1) -> None:
    """As far as the job file has not done it."""
    for name, query in workload.queries.items():
        sink = sink_of(folder, name) if query.sink else None
        for at, sql in query.texts:
            if at == phase and not (workload.edited(phase) and text_in_file(workload, query, phase) is not None):
                running.submit(name, sql, start=query.begins, copies=min(copies, answering(running)), sink=sink)
        if query.withdraw == phase and not (workload.edited(phase) and text_in_file(workload, query, phase - 1)):
            running.withdraw(name)


def answering(running: Towpath) -> int:
    controller = running.engine.controller
    return len(controller.known.nodes) - len(controller.known.lost)


def move_queries(running: Towpath, workload: Workload, nodes: Sequence[str], phase: int) -> None:
    """Every other query sets off for another node; those that cannot move now do not."""
    moving = (
        n
        for n in running.engine.controller.queries.running
        if n not in workload.queries or not workload.queries[n].stays
    )
    for number, name in enumerate(sorted(moving)):
        if len(nodes) > 1 and (number + phase) % 2:
            with suppress(MoveRefused):
                running.move(name, nodes[(number + phase) // 2 % len(nodes)])


def change_carriers(running: Towpath, workload: Workload, phase: int) -> None:
    """Every third query sets off for a carrier of the other kind where it is; those that cannot now do not."""
    if not workload.changing:
        return
    for number, name in enumerate(sorted(running.engine.controller.queries.running)):
        if (number + phase) % 3 == 0:
            for kind in (CarrierKinds.UNIVERSAL, CarrierKinds.COMPILED):
                with suppress(MoveRefused):
                    running.move(name, carriers=kind)


def arrive(workload: Workload, folder: Path, phase: int) -> None:
    """The chunks of a phase appear, each file in one step, as a careful producer does it."""
    for name in workload.recording.catalog:
        for file, rows in workload.recording.pieces(phase, name):
            write_file(rows, folder / name / file)


def settle(running: Towpath) -> None:
    """Until all that has arrived was read, by those who read the past, too."""
    running.engine.finishing.settle()
    running.poll()
    while running.engine.controller.beginnings.behind:
        running.engine.finishing.settle()
        running.poll()


def sink_rows(folder: Path, query: str, running: Towpath) -> pa.Table:
    schema = running.results(query).schema
    files = sorted((folder / "sinks" / query).glob("[!.]*.parquet"))
    return pa.concat_tables([schema.empty_table(), *(pq.read_table(file).cast(schema) for file in files)])
