"""Compares what a job has answered with what its workload says it must have answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

from towpath.api.running import Towpath
from towpath.control.state.fence import MoveStep
from towpath.lab.testing.batch import Batch, between
from towpath.lab.testing.late import late_rows
from towpath.lab.testing.validity import odd
from towpath.lab.testing.workload import Workload
from towpath.verify import Difference, differences

T = TypeVar("T")


@dataclass(frozen=True)
class ComparisonOutcome:
    """What became of every query of a workload."""

    differences: dict[str, Difference]
    taken_back: dict[str, Difference]  # what was shown at some time, and is not among the results in the end
    sinks: dict[str, Difference]  # what a sink has and the results have not, or the other way round
    validity: dict[str, str]  # queries that answer for other event times than they were asked to
    held_back: dict[str, Difference]  # what was owed while only silent streams were waited for
    late: dict[str, str]  # streams whose late rows were not counted as the model does
    rows: int  # results of all queries
    carriers: int
    moves: int  # that passed their fence


def compare(
    running: Towpath,
    workload: Workload,
    shown: Mapping[str, Sequence[pa.Table]],
    sinks: Mapping[str, pa.Table],
    held_back: Mapping[str, Difference],
) -> ComparisonOutcome:
    batch = Batch(workload)
    results = {name: running.results(name) for name in workload.queries}
    passed = [m for m in running.engine.controller.state.moves.values() if m.step in (MoveStep.DRAINING, MoveStep.DONE)]
    return ComparisonOutcome(
        differences=_found({name: _wrong(running, batch, workload, name, results[name]) for name in results}),
        taken_back=_found({name: _denied(shown[name], results[name]) for name in results}),
        sinks=_found({name: differences(results[name], table) for name, table in sinks.items()}),
        validity=_found(
            {
                name: odd(workload.recording, query, running.engine.answers.versions(name))
                for name, query in workload.queries.items()
            }
        ),
        held_back=dict(held_back),
        late=_miscounted(running.late, late_rows(workload.recording), older_than_their_class(workload)),
        rows=sum(table.num_rows for table in results.values()),
        carriers=len(running.engine.carriers),
        moves=len(passed),
    )


def _found(checked: Mapping[str, T | None]) -> dict[str, T]:
    return {name: found for name, found in checked.items() if found is not None}


def _wrong(running: Towpath, batch: Batch, workload: Workload, name: str, actual: pa.Table) -> Difference | None:
    query, versions = workload.queries[name], running.engine.answers.versions(name)
    hands = len(running.job.nodes) == 1 and (query.submit == 0 or query.begins.now)  # it stays in the same ones
    certain = hands and query.goes_on
    if found := between(batch.answers(versions, settled=certain), batch.answers(versions), actual):
        return found
    if not query.goes_on or query.begins.now:
        return None
    # Without a look at what the system says of itself: it stands from the time that was asked for to the end.
    least = batch.complete(query.sql, query.begins.us, settled=certain)
    return between(least, batch.complete(query.sql, query.begins.us), actual)


def _denied(shown: Sequence[pa.Table], actual: pa.Table) -> Difference | None:
    for before in shown:
        if (difference := differences(before, actual)) and difference.missing:
            return difference
    return None


def older_than_their_class(workload: Workload) -> dict[str, int]:
    """Of streams that come to the job later: rows that are older than what those read with them had by then.

    They are late for carriers that run already, if there are any; whoever asks for the past has them all the same.
    """
    recording, found = workload.recording, {}
    for name, phase in workload.added.items():
        alike = [n for n, s in recording.catalog.items() if s.schema_class == recording.catalog[name].schema_class]
        before = [
            time for p in range(phase) for n in alike if n not in workload.added for time in recording.times(p, n)
        ]
        times = [time for p in range(len(recording.chunks)) for time in recording.times(p, name)]
        found[name] = sum(time < max(before) for time in times) if before else 0
    return found


def _miscounted(counted: Mapping[str, int], late: Mapping[str, int], more: Mapping[str, int]) -> dict[str, str]:
    """`more`: that may be counted besides."""
    return {
        name: f"{counted.get(name, 0)} late rows counted, {late.get(name, 0)} came"
        for name in sorted({*counted, *late})
        if not 0 <= counted.get(name, 0) - late.get(name, 0) <= more.get(name, 0)
    }
