"""The fixed columns of universal carriers, with the allotment worked out by hand."""

from __future__ import annotations

from towpath.lang import parse
from towpath.plan.assignment import group_columns, log_columns
from towpath.plan.cut import plan
from towpath.plan.pipeline import Pipeline
from towpath.plan.slots import GROUPS, MERGED, OUTPUTS, Layout, after_aggregate, fits
from towpath.plan.templates import Template, universal_for
from towpath.schema import LINK, Column, Stream, Type

COLUMNS = tuple(Column(f"{type_.value}_{n}", type_) for type_ in Type for n in range(10))
S = Stream("s", (*COLUMNS, Column("at", Type.TIMESTAMP)), "at")
DERIVED = Stream("derived", S.columns, "at", origin=LINK)
CATALOG = {"s": S, "derived": DERIVED}


def pipeline(sql: str) -> Pipeline:
    (found,) = plan(parse(sql, CATALOG), CATALOG).pipelines
    return found


def universal(of: Pipeline) -> Template:
    template = universal_for(of)
    assert template is not None
    return template


def logged(of: Pipeline) -> list[str]:
    return list(log_columns(of, universal(of)))


def test_every_type_has_columns_of_its_own_in_the_log() -> None:
    names = [f"{t.value}_0" for t in Type]
    found = logged(pipeline(f"SELECT {', '.join(names)}, bigint_0 + 1 AS more FROM s"))
    assert found == ["b0", "i0", "l1", "d0", "s0", "t0", "y0", "l0"]
    assert [OUTPUTS[c] for c in found] == [*Type, Type.BIGINT]


def test_the_order_of_outputs_does_not_matter() -> None:
    one = logged(pipeline("SELECT int_1 AS a, int_0 AS b, int_0 + int_1 AS c, int_1 * 2 AS d FROM s"))
    other = logged(pipeline("SELECT int_1 * 2 AS d, int_0 AS b, int_0 + int_1 AS c, int_1 AS a FROM s"))
    assert dict(zip("abcd", one, strict=True)) == dict(zip("dbca", other, strict=True))
    assert sorted(one) == ["i0", "i1", "l0", "l1"]


def test_aggregates_share_what_they_are_made_of() -> None:
    items = "sum(bigint_0) AS a, avg(bigint_0) AS b, count(bigint_0) AS c, count(*) AS d, min(at) AS e, avg(int_0) AS f"
    found = Layout(pipeline(f"SELECT {items} FROM s [RANGE 10 SECONDS]"))
    made = {s.expr.sql().replace('"', ""): found.merged(s) for s in found.pipeline.aggregates}
    assert len(found.partials) == 7  # high, low, count; the tuples; the smallest; a sum and a count
    assert made["SUM(i0.bigint_0)"] == made["AVG(i0.bigint_0)"][:2]
    assert made["COUNT(i0.bigint_0)"] == made["AVG(i0.bigint_0)"][2:]
    assert made["MIN(i0.at)"] == ("min_l0",)
    assert len({*made["COUNT(*)"], *made["AVG(i0.bigint_0)"], *made["AVG(i0.int_0)"]}) == 6
    assert {MERGED[c] for c in made["AVG(i0.int_0)"]} == {("sum", Type.BIGINT)}


def test_groups_travel_as_bigint_and_come_out_in_their_type() -> None:
    found = Layout(pipeline("SELECT boolean_0, string_0, count(*) AS n FROM s [RANGE 1 SECOND] GROUP BY 1, 2, date_0"))
    assert sorted(found.groups.values()) == ["g_l0", "g_l1", "g_s0"]
    assert sorted(group_columns(found.pipeline, universal(found.pipeline))) == ["b0", "s0", "y0"]
    assert [GROUPS[c] for c in sorted(found.groups.values())] == [Type.BIGINT, Type.BIGINT, Type.STRING]


def test_what_does_not_fit() -> None:
    window = "FROM s [RANGE 1 SECOND]"
    assert fits(pipeline("SELECT * FROM s")) is False  # ten columns of each type
    assert fits(pipeline("SELECT string_0 FROM derived")) is False
    assert fits(pipeline(f"SELECT count(DISTINCT int_0) AS n {window}")) is False
    assert fits(pipeline(f"SELECT stddev(int_0) AS n {window}")) is False
    assert fits(pipeline(f"SELECT min(string_0) AS a, min(string_1) AS b {window}")) is False
    assert fits(pipeline(f"SELECT count(*) AS n {window} GROUP BY double_0, double_1, double_2")) is False
    two = "FROM s [RANGE 1 SECOND] a JOIN s [RANGE 1 SECOND] b ON a.int_0 = b.int_0"
    assert fits(pipeline(f"SELECT a.int_0 {two}")) is True
    assert fits(pipeline(f"SELECT a.int_0 {two} JOIN s [RANGE 1 SECOND] c ON a.int_0 = c.int_0")) is False
    assert fits(pipeline(f"SELECT a.int_0 {two.replace('JOIN s', 'JOIN derived')}")) is False


def test_what_fits() -> None:
    columns = ", ".join(f"string_{n}" for n in range(8))
    assert fits(pipeline(f"SELECT {columns} FROM s"))
    assert fits(pipeline("SELECT string_0, max(string_1) AS top FROM s [RANGE 10 SECONDS SLIDE 5 SECONDS] GROUP BY 1"))


def test_after_the_aggregate_the_layout_is_the_same() -> None:
    whole = pipeline(
        "SELECT string_0, sum(bigint_0) / 2 AS half, window_end, max(double_3) AS m FROM s [RANGE 10 SECONDS] "
        "WHERE int_0 = 5 AND lower(string_5) = 'a' GROUP BY string_0, int_4 HAVING count(*) > 3"
    )
    rest = after_aggregate(whole)
    assert Layout(rest).outputs == Layout(whole).outputs
    assert Layout(rest).groups == Layout(whole).groups
    assert Layout(rest).partials == Layout(whole).partials
    assert rest.having == whole.having and rest.window == whole.window and not rest.residuals
    names = [name for name, _ in rest.sources[0].schema_class if name]
    assert names == ["bigint_0", "double_3", "int_4", "string_0"]
