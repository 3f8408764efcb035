"""Runs a workload on real Spark, phase by phase, and compares every query with the batch answer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from towpath.api import Towpath, start
from towpath.job import Job, NodeDef, QueryDef, ResultsDef
from towpath.lang import parse
from towpath.streams.definition import StreamDef
from towpath.streams.sources import FilesSource
from towpath.testing.workload import Workload
from towpath.verify import Difference, answer, differences


@dataclass(frozen=True)
class Outcome:
    """What became of every query of a workload."""

    differences: dict[str, Difference]
    rows: int  # results of all queries
    carriers: int
    late: int


def job_of(workload: Workload, folder: Path) -> Job:
    """A job over empty folders, one for each stream, with the queries that are there from the beginning."""
    streams = {}
    for name, stream in workload.recording.catalog.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        source = FilesSource(type="files", path=str(folder / name), format="parquet")
        streams[name] = StreamDef(stream, source, idle_after_ms=0)
    early = {name: QueryDef.model_validate({"sql": q.sql}) for name, q in workload.queries.items() if q.submit == 0}
    node = NodeDef.model_validate({"type": "embedded", "cores": 2, "memory": "2g"})
    return Job(folder / "store", 50, streams, {"local": node}, early, None, ResultsDef.model_validate({}))


def run(workload: Workload, folder: Path) -> Outcome:
    with start(job_of(workload, folder)) as running:
        for phase in range(len(workload.recording.chunks)):
            if phase:
                change_queries(running, workload, phase)
            arrive(workload, folder, phase)
            settle(running)
        running.drain()
        return compare(running, workload)


def change_queries(running: Towpath, workload: Workload, phase: int) -> None:
    for name, query in workload.queries.items():
        if query.submit == phase:
            running.submit(name, query.sql)
        if query.withdraw == phase:
            running.withdraw(name)


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
    for name, submission in workload.queries.items():
        query = parse(submission.sql, catalog, name)
        actual = running.results(name)
        rows += actual.num_rows
        difference = differences(answer(database, query, catalog, running.engine.validity(name)), actual)
        if difference is not None:
            found[name] = difference
    carriers = running.engine.carriers
    return Outcome(found, rows, len(carriers), sum(c.late for c in carriers))
