"""A job that is started again with an edited job file: queries come, change and go with it, and streams come.

A query is the job file's as long as all that was said of it was said there. One that was submitted in between, or
replaced by a submission, is nobody's but the one's who did it: edits leave it alone.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from towpath.lab.testing.late import late_rows
from towpath.lab.testing.workload import DrawnQuery, Workload
from towpath.lang import parse


def text_in_file(workload: Workload, query: DrawnQuery, phase: int) -> str | None:
    """What the job file says of a query in a phase, if anything."""
    said = [(at, sql) for at, sql in query.texts if at <= phase]
    if not said or (query.withdraw is not None and query.withdraw <= phase):
        return None
    return said[-1][1] if all(workload.edited(at) for at, _ in said) else None


def with_edits(rng: Random, workload: Workload) -> Workload:
    """In some workloads the job is started again; in some of those one more stream comes with it."""
    recording = workload.recording
    if rng.randint(0, 2) < 2:
        return workload
    phase = rng.randint(1, len(recording.chunks) - 1)
    found = replace(workload, restarts=(phase,))
    waiting = len(recording.catalog) < 2 or late_rows(recording) or recording.idle_after_ms
    return found if waiting or rng.randint(0, 1) else _with_new_stream(found, sorted(recording.catalog)[-1], phase)


def _with_new_stream(workload: Workload, stream: str, phase: int) -> Workload:
    """Nobody can ask for a stream before it is there."""

    def reads(query: DrawnQuery) -> bool:
        parsed = [parse(sql, workload.recording.known) for _, sql in query.texts]
        return any(stream in one.streams for one in parsed)

    def after(query: DrawnQuery) -> DrawnQuery:
        return DrawnQuery(query.sql, phase, sink=query.sink, start=query.start)

    queries = {
        name: after(query) if query.submit < phase and reads(query) else query
        for name, query in workload.queries.items()
    }
    return replace(workload, queries=queries, added={stream: phase})
