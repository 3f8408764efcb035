"""What random workloads are compared with: it must notice what is wrong, with small cases worked out by hand."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pytest

from towpath.arrow import ARROW
from towpath.config.settings import BEGINNING, NOW, Start
from towpath.lab.testing.batch import Batch, between
from towpath.lab.testing.late import cuts, first_late_phase, late_rows
from towpath.lab.testing.recording import Recording
from towpath.lab.testing.validity import odd
from towpath.lab.testing.workload import DrawnQuery, Replacement, Workload
from towpath.schema import Column, Stream, Type

SECOND = 1_000_000


def stream(name: str, *others: Column, delay: int = 0) -> Stream:
    columns = (Column("k", Type.BIGINT), *others, Column("at", Type.TIMESTAMP))
    return Stream(name, columns, "at", delay_us=delay * SECOND)


def rows(of: Stream, *seconds: int) -> pa.Table:
    arrays = {c.name: pa.nulls(len(seconds), ARROW[c.type]) for c in of.columns}
    arrays["k"] = pa.array(seconds, pa.int64())
    return pa.table(arrays | {"at": pa.array([s * SECOND for s in seconds], ARROW[Type.TIMESTAMP])})


# A stream, another one of its class that is behind, and one of another class that is further behind.
A, B, C = stream("a"), stream("b", delay=1), stream("c", Column("x", Type.DOUBLE))
D = stream("d", Column("y", Type.DOUBLE))  # has its first row later
RECORDING = Recording(
    {"a": A, "b": B, "c": C, "d": D},
    (
        {"a": rows(A, 10, 20), "b": rows(B, 12), "c": rows(C, 5), "d": rows(D)},
        {"a": rows(A, 21, 10, 11), "b": rows(B, 13), "c": rows(C), "d": rows(D, 1)},
    ),
)
SUM = "SELECT sum(k) AS n FROM a [RANGE 100 SECONDS]"
LATER = "SELECT k FROM d"
PAIRS = "SELECT a.k AS n FROM a [RANGE 1 SECOND] AS a, c [RANGE 100 SECONDS] AS c WHERE a.k > 0 AND c.k < a.k"


def test_streams_that_are_read_together_wait_for_each_other_and_share_the_longest_delay() -> None:
    assert cuts(RECORDING, [A.schema_class]) == [None, 11 * SECOND, 12 * SECOND]
    assert cuts(RECORDING, [A.schema_class, C.schema_class]) == [None, 5 * SECOND, 5 * SECOND]
    assert late_rows(RECORDING) == {"a": 1}, "the one at 10; the one at 11 is at the bound"
    assert first_late_phase(RECORDING) == 1


def test_joins_and_aggregates_answer_for_rows_in_time_and_filters_for_all() -> None:
    batch = Batch(Workload(RECORDING, {}))
    assert batch.complete(SUM)["n"].to_pylist() == [10 + 20 + 21 + 11]
    passed = "SELECT k AS n FROM a"
    assert sorted(batch.complete(passed)["n"].to_pylist()) == [10, 10, 11, 20, 21]
    assert sorted(batch.complete(passed, settled=False)["n"].to_pylist()) == [10, 11, 20, 21]


def test_between_notices_what_is_missing_and_what_is_too_much() -> None:
    def table(*values: int) -> pa.Table:
        return pa.table({"n": pa.array(values, pa.int64())})

    assert between(table(1, 2), table(1, 2, 3), table(2, 1, 3)) is None
    assert between(table(1, 2), table(1, 2, 3), table(1, 2)) is None
    missing = between(table(1, 2), table(1, 2, 3), table(1, 3))
    assert missing is not None and missing.missing == 1
    extra = between(table(1, 2), table(1, 2, 3), table(1, 2, 2))
    assert extra is not None and extra.extra == 1


@dataclass
class Valid:
    from_us: int | None = None
    until_us: int | None = None
    ceded_us: int | None = None
    settled: bool = True


@dataclass
class Version:
    validity: list[Valid]
    sql: str = SUM


@pytest.mark.parametrize(
    ("query", "valid", "right"),
    [
        (DrawnQuery(SUM), Valid(), True),
        (DrawnQuery(SUM), Valid(1), False),
        (DrawnQuery(SUM), Valid(until_us=9), False),
        (DrawnQuery(SUM), Valid(settled=False), False),
        (DrawnQuery(SUM, 1, start=BEGINNING), Valid(), True),
        (DrawnQuery(SUM, 1, start=Start(7)), Valid(7), True),
        (DrawnQuery(SUM, 1, start=Start(7)), Valid(8), False),
        (DrawnQuery(SUM, 1, start=NOW), Valid(20 * SECOND + 1), True),
        (DrawnQuery(SUM, 1, start=NOW), Valid(20 * SECOND), False),
        (DrawnQuery(LATER, 1), Valid(), True),
        (DrawnQuery(SUM, 1), Valid(21 * SECOND + 1 + 100 * SECOND), True),
        (DrawnQuery(SUM, 1), Valid(21 * SECOND + 2 + 100 * SECOND), False),
        (DrawnQuery(SUM, 1), Valid(settled=False), False),
    ],
)
def test_a_query_answers_for_what_was_asked(query: DrawnQuery, valid: Valid, right: bool) -> None:
    assert (odd(RECORDING, query, [Version([valid])]) is None) == right


@pytest.mark.parametrize(("seconds", "right"), [((20, 5), True), ((20, 4), False), ((19, 5), False)])
def test_every_select_begins_now_in_its_own_streams(seconds: tuple[int, int], right: bool) -> None:
    both = DrawnQuery("SELECT k FROM a UNION ALL SELECT k FROM c", 1, start=NOW)
    assert (odd(RECORDING, both, [Version([Valid(s * SECOND + 1) for s in seconds])]) is None) == right


@pytest.mark.parametrize(
    ("before", "after", "right"),
    [
        (Valid(ceded_us=5), Valid(5), True),
        (Valid(ceded_us=5), Valid(6), False),
        (Valid(ceded_us=5), Valid(4), False),
        (Valid(), Valid(settled=False), True),
        (Valid(ceded_us=5), Valid(settled=False), False),
        (Valid(ceded_us=5), Valid(5, until_us=9), False),
    ],
)
def test_versions_meet(before: Valid, after: Valid, right: bool) -> None:
    query = DrawnQuery(SUM, replaced=(Replacement(1, PAIRS),))
    assert (odd(RECORDING, query, [Version([before]), Version([after])]) is None) == right
