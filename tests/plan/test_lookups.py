"""What a class of streams says of the tables that its tuples look rows up in, and that it is still that class."""

from __future__ import annotations

import pytest

from towpath.lang import parse
from towpath.plan.cut import plan
from towpath.plan.lookups import lookups_of
from towpath.plan.pipeline import Pipeline
from towpath.plan.serial import dump_pipeline, load_pipeline
from towpath.plan.show import nodes, tree
from towpath.plan.templates import template_of, universal_for
from towpath.schema import Column, Stream, Type, base_class, is_link, reference_table, stream_of, tables_of

BIDS = Stream("bids", (Column("k", Type.BIGINT), Column("side.v", Type.STRING), Column("at", Type.TIMESTAMP)), "at")
SIDE = reference_table("side", (Column("k", Type.INT), Column("v", Type.STRING)))
CATALOG = {"bids": BIDS, "side": SIDE}
PLAIN = "SELECT k FROM bids"
JOINED = "SELECT b.k, s.v FROM bids AS b JOIN side AS s ON b.k % 10 = s.k"


def pipeline(sql: str) -> Pipeline:
    return plan(parse(sql, CATALOG), CATALOG).pipelines[-1]


def test_a_class_says_its_streams_and_its_tables() -> None:
    joined = pipeline(JOINED).sources[0].schema_class
    assert base_class(joined) == BIDS.schema_class != joined
    assert tables_of(joined) == {SIDE}
    assert tables_of(BIDS.schema_class) == frozenset()
    (lookup,) = lookups_of(joined)
    assert (lookup.table, lookup.outer, lookup.reads) == ("side", False, SIDE)
    # The stream has a column of the name that the table's would have.
    assert [brought.name for _, brought in lookup.columns] == ["side 2.k", "side 2.v"]


def test_a_template_knows_the_classes_that_it_reads() -> None:
    joined, plain = template_of(pipeline(JOINED)).family, template_of(pipeline(PLAIN)).family
    assert joined.read == plain.read == plain.classes != joined.classes


def test_a_pipeline_with_tables_is_written_down() -> None:
    made = pipeline(JOINED)
    assert load_pipeline(*dump_pipeline(made)) == made
    assert universal_for(made) is not None


def test_a_view_that_looks_rows_up_is_a_link_all_the_same() -> None:
    sql = "SELECT v.n, s.v FROM (SELECT count(*) AS n FROM bids [RANGE 1 SECOND]) AS v JOIN side AS s ON v.n = s.k"
    found = pipeline(sql).sources[0].schema_class
    assert is_link(found)
    assert not is_link(pipeline(JOINED).sources[0].schema_class)
    assert stream_of(found) == stream_of(base_class(found))


@pytest.mark.parametrize(
    "other",
    [
        PLAIN,
        JOINED.replace("JOIN", "LEFT JOIN"),
        JOINED.replace("% 10", "% 9"),
        "SELECT b.k, s.v FROM bids AS b JOIN side AS s ON b.k % 10 = s.k JOIN side AS t ON b.k = t.k",
    ],
)
def test_queries_that_look_up_something_else_are_others(other: str) -> None:
    assert pipeline(JOINED).signature != pipeline(other).signature
    assert not template_of(pipeline(JOINED)).covers(template_of(pipeline(other)))


def test_the_plan_says_what_is_looked_up() -> None:
    made = plan(parse(JOINED, CATALOG), CATALOG)
    assert "scan bids AS i0, with side by k % 10 = k: k, at, side 2.v" in tree(nodes(made.tree, CATALOG))
