from __future__ import annotations

import pytest

from towpath.lang import parse
from towpath.plan import CUT, WHOLE
from towpath.plan.cut import plan
from towpath.schema import LINK, Column, Stream, Type, is_link, stream_of

COLUMNS = (
    Column("k", Type.BIGINT),
    Column("v", Type.DOUBLE),
    Column("name", Type.STRING),
    Column("at", Type.TIMESTAMP),
)
CATALOG = {name: Stream(name, COLUMNS, "at", 1_000_000) for name in ("a", "b", "c")}
JOINED = "a [RANGE 4 SECONDS] AS x, b [RANGE 4 SECONDS] AS y WHERE x.k = y.k AND x.v > 3"
TURNED = "b [RANGE 4 SECONDS] AS p, a [RANGE 4 SECONDS] AS q WHERE 3 < q.v AND p.k = q.k"
TOTALS = f"SELECT x.name, count(*) AS n, max(y.v) AS best, window_end FROM {JOINED} GROUP BY x.name HAVING count(*) > 2"


def planned(sql: str, fragments: str = CUT):  # type: ignore[no-untyped-def]
    return plan(parse(sql, CATALOG, "q"), CATALOG, fragments)


def test_an_aggregate_is_cut_off_its_join() -> None:
    found = planned(TOTALS)
    (derived,), (top,) = found.derived, found.pipelines
    assert [s.stream for s in derived.pipeline.sources] == ["a", "b"]
    assert derived.pipeline.window is None
    assert [s.stream for s in top.sources] == [derived.stream.name]
    assert top.window is not None and len(top.groups) == 1 and len(top.having) == 1
    assert [c.type for c in derived.stream.columns] == [Type.STRING, Type.DOUBLE, Type.TIMESTAMP]
    assert derived.columns == ("v0", "v1")
    assert derived.stream.delay_us == 0, "what a link releases is complete"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT k FROM a WHERE v > 1",
        "SELECT k, count(*) AS n FROM a [RANGE 4 SECONDS] WHERE v > 1 GROUP BY k",
        f"SELECT x.k FROM {JOINED}",
    ],
)
def test_what_has_one_operator_besides_filters_stays_whole(sql: str) -> None:
    assert planned(sql).derived == ()
    assert planned(sql) == planned(sql, WHOLE)


def test_whole_is_whole() -> None:
    assert planned(TOTALS, WHOLE).derived == ()
    assert [s.stream for s in planned(TOTALS, WHOLE).pipelines[0].sources] == ["a", "b"]


def test_queries_share_a_lower_part_however_they_are_written() -> None:
    other = f"SELECT max(p.v) AS m, q.name FROM {TURNED} GROUP BY q.name"
    assert planned(TOTALS).derived[0].stream == planned(other).derived[0].stream


@pytest.mark.parametrize(
    "other",
    [
        TOTALS.replace("> 3", "> 4"),
        TOTALS.replace("x.name", "y.name"),
        TOTALS.replace("4 SECONDS", "5 SECONDS"),
        TOTALS.replace("b [", "c ["),
    ],
)
def test_another_lower_part_has_another_name(other: str) -> None:
    assert planned(TOTALS).derived[0].stream.name != planned(other).derived[0].stream.name


def test_who_counts_rows_needs_no_values() -> None:
    found = planned(f"SELECT count(*) AS n FROM {JOINED}")
    assert [c.type for c in found.derived[0].stream.columns] == [Type.TIMESTAMP, Type.TIMESTAMP]


def test_each_select_of_a_union_is_cut_by_itself() -> None:
    count = f"SELECT count(*) AS n FROM {JOINED}"
    found = planned(f"{count} UNION ALL {count.replace('> 3', '> 5')} UNION ALL SELECT k AS n FROM a")
    assert len(found.derived) == 2
    assert [s.sources[0].stream for s in found.pipelines] == [*(d.stream.name for d in found.derived), "a"]


def test_a_class_of_derived_streams_says_what_they_look_like() -> None:
    stream = planned(TOTALS).derived[0].stream
    assert is_link(stream.schema_class) and not is_link(CATALOG["a"].schema_class)
    common = stream_of(stream.schema_class)
    assert common.schema_class == stream.schema_class and common.origin == LINK
