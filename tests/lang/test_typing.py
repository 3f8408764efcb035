from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from towpath.errors import QueryError
from towpath.lang import ALLOWED, WINDOW, column, expression_text, infer, parse
from towpath.lang.literals import cast
from towpath.schema import Type

from .cases import catalog

COLUMNS = {c.name: c.type for c in catalog()["bids"].columns}


def column_type(alias: str, name: str) -> Type:
    assert alias == "bids"
    return COLUMNS[name]


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (exp.Add(this=column("bids", "lane"), expression=exp.Literal.number(1)), Type.BIGINT),
        (exp.Mul(this=column("bids", "lane"), expression=column("bids", "price")), Type.DOUBLE),
        (exp.Div(this=column("bids", "lane"), expression=column("bids", "lane")), Type.DOUBLE),
        (exp.Count(this=exp.Star()), Type.BIGINT),
        (exp.Sum(this=column("bids", "lane")), Type.BIGINT),
        (exp.Max(this=column("bids", "day")), Type.DATE),
        (column(WINDOW, "window_end"), Type.TIMESTAMP),
        (cast(exp.Null(), Type.STRING), Type.STRING),
        (exp.Literal.number(2**31 - 1), Type.INT),
        (exp.Literal.number(2**31), Type.BIGINT),
        (exp.Neg(this=exp.Literal.number(2**31)), Type.INT),
        (exp.Neg(this=exp.Literal.number(2**31 + 1)), Type.BIGINT),
        (exp.Neg(this=exp.Literal.number(2**63)), Type.BIGINT),
    ],
    ids=lambda value: expression_text(value) if isinstance(value, exp.Expression) else value.value,
)
def test_infer_without_a_text(expr: exp.Expression, expected: Type) -> None:
    assert infer(expr, column_type) is expected


def test_infer_reports_all_mistakes() -> None:
    wrong = exp.And(this=column("bids", "lane"), expression=exp.Sqrt(this=column("bids", "channel")))
    with pytest.raises(QueryError) as caught:
        infer(wrong, column_type)
    assert [problem.message for problem in caught.value.problems] == [
        "AND needs a boolean, but bids.lane is an int",
        "sqrt needs a number, but bids.channel is a string",
        "AND needs a boolean, but SQRT(bids.channel) is a double",
    ]


def test_infer_refuses_nodes_outside_of_the_language() -> None:
    foreign = exp.SimilarTo(this=column("bids", "channel"), expression=exp.Literal.string("a"))
    assert exp.SimilarTo not in ALLOWED
    with pytest.raises(QueryError, match="is not supported"):
        infer(foreign, column_type)


def _operators(
    inner: st.SearchStrategy[exp.Expression], *kinds: type[exp.Expression]
) -> st.SearchStrategy[exp.Expression]:
    return st.builds(lambda kind, a, b: kind(this=a.copy(), expression=b.copy()), st.sampled_from(kinds), inner, inner)


NUMBERS = st.recursive(
    st.sampled_from([column("bids", "lane"), column("bids", "price"), exp.Literal.number(3)]),
    lambda inner: (
        _operators(inner, exp.Add, exp.Sub, exp.Mul, exp.Div)
        | inner.map(lambda e: exp.Neg(this=e.copy()))
        | inner.map(lambda e: exp.Abs(this=e.copy()))
    ),
)
STRINGS = st.recursive(
    st.sampled_from([column("bids", "channel"), exp.Literal.string("it's")]), lambda inner: _operators(inner, exp.DPipe)
)
CONDITIONS = st.recursive(
    st.just(column("bids", "hot"))
    | _operators(NUMBERS, exp.EQ, exp.NEQ, exp.LT, exp.GTE)
    | _operators(STRINGS, exp.EQ, exp.GT)
    | st.builds(lambda a, b, c: exp.Between(this=a.copy(), low=b.copy(), high=c.copy()), NUMBERS, NUMBERS, NUMBERS)
    | NUMBERS.map(lambda e: exp.Is(this=e.copy(), expression=exp.Null())),
    lambda inner: _operators(inner, exp.And, exp.Or, exp.EQ) | inner.map(lambda e: exp.Not(this=e.copy())),
)


@given(NUMBERS | STRINGS | CONDITIONS)
def test_any_expression_prints_and_reads_back_as_itself(expr: exp.Expression) -> None:
    query = parse(f"SELECT {expression_text(expr)} AS x FROM bids", catalog())
    assert query.selects[0].items[0].expr == expr
    assert query.selects[0].items[0].type is infer(expr, column_type)
