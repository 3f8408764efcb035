"""What is at the bounds of the language, or beyond those of the engine; and fragments that fail."""

from __future__ import annotations

import polars as pl
import pyarrow as pa
import pytest
from tests.vector.running import as_input, filtered, fragment, pipelines

from towpath.arrow import arrow_schema
from towpath.errors import FragmentFailed
from towpath.plan.pipeline import Pipeline
from towpath.plan.slots import fits
from towpath.schema import Column, Stream, Type
from towpath.vector.fragments import VectorFragment

TYPES = {"k": Type.STRING, "n": Type.BIGINT, "at": Type.TIMESTAMP}
STREAM = Stream("s", tuple(Column(name, type_) for name, type_ in TYPES.items()), "at")
ROWS = as_input(pa.Table.from_pylist([{"k": "abc", "n": 5, "at": 0}], arrow_schema(TYPES)), STREAM)


def pipeline(sql: str) -> Pipeline:
    return pipelines(sql, {"s": STREAM})[1][0]


def value(expression: str) -> object:
    log = filtered([fragment(1, pipeline(f"SELECT {expression} AS v FROM s"))], [ROWS])
    (row,) = log.to_pylist()
    (found,) = (v for name, v in row.items() if v is not None and not name.startswith("_"))
    return found


def nested(inner: str, text: str, levels: int) -> str:
    for _ in range(levels):
        inner = text.format(inner)
    return inner


@pytest.mark.parametrize(
    ("text", "levels", "answer"),
    [
        ("({} + 1)", 140, 145),
        ("abs({} - 1)", 70, 1),
        ("nullif({}, 0)", 140, 5),
        ("({} % 100)", 140, 5),
        ("CASE WHEN {} > 3 THEN 5 ELSE 6 END", 70, 5),
        ("greatest({}, 2.5)", 140, 5.0),
        ("CAST(CAST({} AS STRING) AS BIGINT)", 70, 5),
        ("if({} BETWEEN 1 AND 9, 5, 0)", 70, 5),
    ],
)
def test_deep_nesting_takes_time_in_proportion(text: str, levels: int, answer: object) -> None:
    assert value(nested("n", text, levels)) == answer


def test_many_branches() -> None:
    branches = " ".join(f"WHEN {n} THEN {n * 2}" for n in range(100, 1000))
    assert value(f"CASE n {branches} ELSE n END") == 5
    assert value(f"n IN ({', '.join(map(str, range(2000)))})") is True


def test_many_conditions() -> None:
    many = " OR ".join(f"(n = {n} AND k <> 'x{n}')" for n in range(100))
    log = filtered([fragment(1, pipeline(f"SELECT n FROM s WHERE {many}"))], [ROWS])
    assert log["_fragment"].to_pylist() == [1]


@pytest.mark.parametrize(
    ("pattern", "answer"),
    [("a_c", True), ("%b%", True), ("a%c", True), ("ab", False), ("%", True), ("___%", True), ("____", False)],
)
def test_patterns(pattern: str, answer: bool) -> None:
    assert value(f"k LIKE '{pattern}'") is answer


def test_patterns_that_are_no_regular_expressions() -> None:
    for text in (".*", "[a]", "(", "\\d", "a b", "^", "$", "#", "&&", "~", "\t", "é", "😀", "-", "a{2}", "|"):
        assert value(f"('x' || k || '{text}y') LIKE '_abc{text}_'") is True, text
        assert value(f"k LIKE '_{text}_'") is False, text


def test_a_very_long_pattern_is_left_to_compiled_carriers() -> None:
    assert fits(pipeline(f"SELECT n FROM s WHERE k LIKE '{'_' * 1000}'"))
    assert filtered([fragment(1, pipeline(f"SELECT n FROM s WHERE k LIKE '{'_%' * 500}'"))], [ROWS]).num_rows == 0
    assert not fits(pipeline(f"SELECT n FROM s WHERE k LIKE '{'_' * 1001}'"))
    assert not fits(
        pipeline(f"SELECT n, count(*) AS c FROM s [RANGE 1 SECOND] GROUP BY n, k HAVING k LIKE '{'_' * 1001}'")
    )


class Failing(VectorFragment):
    """Compiled to something that Polars cannot calculate."""

    @property
    def masks(self) -> tuple:  # type: ignore[override]
        (mask,) = super().masks
        named = type(mask[0])("no such column", pl.col("nothing") > 1)
        return ((*mask, named),)


def test_who_fails_is_named() -> None:
    good = fragment(1, pipeline("SELECT n FROM s WHERE n > 1"))
    bad = Failing(2, pipeline("SELECT n FROM s WHERE n > 2"))
    with pytest.raises(FragmentFailed, match=r"fragment 2 fails: .*nothing"):
        filtered([good, bad], [ROWS])
