"""What `check` accepts can be planned, put into a template and into its table, whole and cut. Without Spark."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from towpath.errors import QueryError
from towpath.lang import parse
from towpath.plan import CUT, WHOLE
from towpath.plan.assignment import TableChange, columns, group_columns, log_columns, rows
from towpath.plan.cut import plan
from towpath.plan.pipeline import Pipeline
from towpath.plan.serial import dump_pipeline, dump_template, load_pipeline, load_template
from towpath.plan.templates import template_of
from towpath.schema import Column, Stream, Type
from towpath.spark.assignments import publish
from towpath.spark.carrier import column_types

ODD = {"_stream": Type.STRING, "unit price": Type.DOUBLE, 'say "so"': Type.BIGINT, "select": Type.BOOLEAN}
PLAIN = {"k": Type.BIGINT, "n": Type.INT, "x": Type.DOUBLE, "t": Type.STRING, "b": Type.BOOLEAN, "d": Type.DATE}
COLUMNS = {**PLAIN, **ODD, "at": Type.TIMESTAMP}
CATALOG = {name: Stream(name, tuple(Column(*item) for item in COLUMNS.items()), "at") for name in ("s", "r")}

TEXTS = ("", "a", "it''s", "C:\\Windows%", "%a_b%", "\n", "😀", "%" * 40, "x" * 300)
LITERALS: dict[Type, tuple[str, ...]] = {
    Type.BIGINT: ("0", "1", "- 1", "2147483648", "9223372036854775807", "- 9223372036854775808"),
    Type.DOUBLE: ("0.5", "1e308", "- 1e-308", "123456789012345678.5"),
    Type.STRING: tuple(f"'{text}'" for text in TEXTS),
    Type.BOOLEAN: ("true", "false"),
    Type.DATE: ("DATE '0001-01-01'", "DATE '9999-12-31'"),
    Type.TIMESTAMP: ("TIMESTAMP '0001-01-01'", "TIMESTAMP '9999-12-31 23:59:59.999999'"),
}


class Writer:
    """Writes SELECTs at random: odd ones, and nearly all of them valid."""

    def __init__(self, seed: int) -> None:
        self._rng = Random(seed)
        self._names: list[str] = []

    def select(self) -> str:
        rng = self._rng
        self._names = ["a", "b", "c"][: rng.randint(1, 3)]
        grouped = rng.random() < 0.5
        window = " [RANGE 2 SECONDS]" if grouped or len(self._names) > 1 else ""
        inputs = ", ".join(f"{rng.choice('sr')}{window} AS {name}" for name in self._names)
        ties = [f"a.{quoted(c)} = {name}.{quoted(c)}" for name in self._names[1:] for c in ("_stream", "k")]
        where = [*ties, *(self.value(Type.BOOLEAN, 3) for _ in range(rng.choice((0, 1, 3, 20))))] or ["true"]
        text = f"FROM {inputs} WHERE {' AND '.join(where)}"
        if not grouped:
            return f"SELECT {named([self.any_value() for _ in range(rng.choice((1, 3, 70)))])} {text}"
        keys = [self.column(rng.choice(list(COLUMNS.values()))) for _ in range(rng.choice((0, 1, 4)))]
        keys += [f"{key} IS NULL" for key in keys]
        calls = [f"max({self.value(Type.DOUBLE, 2)})" for _ in range(rng.choice((0, 0, 1, 65)))]
        groups = f" GROUP BY {', '.join(keys)}" if keys else ""
        having = rng.choice(["", " HAVING true", " HAVING i0 IS NOT NULL", " HAVING count(*) > 1"])
        having = having or ("" if keys or calls else " HAVING true")
        return f"SELECT {named([*keys, *calls, 'window_start'])} {text}{groups}{having}"

    def any_value(self) -> str:
        return self.value(self._rng.choice(list(LITERALS)), self._rng.randint(0, 3))

    def column(self, type_: Type) -> str:
        fits = [c for c, t in COLUMNS.items() if t is type_ or (type_ is Type.BIGINT and t is Type.INT)]
        return f"{self._rng.choice(self._names)}.{quoted(self._rng.choice(fits))}"

    def value(self, type_: Type, depth: int) -> str:
        rng = self._rng
        if depth == 0 or rng.random() < 0.2:
            return self.column(type_) if rng.random() < 0.6 else rng.choice(LITERALS[type_])
        form = rng.choice((*ANY, *FORMS.get(type_, ())))
        own = [self.value(type_, depth - 1) for _ in range(form.count("{own}"))]
        others = {t: self.value(t, depth - 1) for t in LITERALS if f"{{{t.name}}}" in form}
        numbers = ", ".join(map(str, range(rng.choice((1, 5, 70, 200)))))
        text = form.replace("{numbers}", numbers).replace("{pattern}", rng.choice(LITERALS[Type.STRING]))
        for name, part in others.items():
            text = text.replace(f"{{{name.name}}}", part)
        for part in own:
            text = text.replace("{own}", part, 1)
        return text


ANY = (
    "(CASE WHEN {BOOLEAN} THEN {own} ELSE {own} END)",
    "(CASE {BIGINT} WHEN {BIGINT} THEN {own} END)",
    "coalesce({own}, {own}, NULL)",
    "if({BOOLEAN}, NULL, {own})",
)
NUMBERS = ("({own} + {own})", "({own} * {own})", "abs(- {own})", "least({own}, {own})")
FORMS: dict[Type, tuple[str, ...]] = {
    Type.BIGINT: (*NUMBERS, "floor({DOUBLE})", "length({STRING})", "({own} % {own})"),
    Type.DOUBLE: (*NUMBERS, "({own} / {BIGINT})", "power({own}, {BIGINT})", "round({own}, 3)"),
    Type.STRING: ("({own} || {own})", "substring({own}, {BIGINT})", "CAST({DATE} AS STRING)"),
    Type.BOOLEAN: (
        *("(NOT {own})", "({own} AND {own})", "({own} OR {own})", "({STRING} LIKE {pattern})", "({DATE} IS NULL)"),
        *("({DOUBLE} NOT BETWEEN {BIGINT} AND {DOUBLE})", "({TIMESTAMP} <= {TIMESTAMP})", "({BIGINT} IN ({numbers}))"),
        *("({STRING} = {STRING})", "({BIGINT} <> {BIGINT})"),
    ),
}


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def named(items: list[str]) -> str:
    return ", ".join(f"{item} AS i{n}" for n, item in enumerate(items))


def check(pipeline: Pipeline, folder: Path) -> None:
    template = template_of(pipeline)
    types = columns(template, column_types(template))
    made = rows(7, pipeline, template)
    assert all(row.keys() <= types.keys() for row in made)
    assert len({name.lower() for name in types}) == len(types), "Spark does not distinguish names by case"
    # The table itself: every constant has a type that holds it.
    publish(folder / "table", 1, types, TableChange(made))
    assert len(list(log_columns(pipeline, template))) == len(pipeline.outputs)
    assert len(list(group_columns(pipeline, template))) == len(pipeline.groups)
    again = load_template(dump_template(template))
    assert again.covers(template) and template.covers(again)
    same = load_pipeline(*dump_pipeline(pipeline))
    assert (repr(same), same.signature) == (repr(pipeline), pipeline.signature)


def test_the_queries_are_accepted() -> None:
    refused = 0
    for seed in range(100):
        try:
            parse(Writer(seed).select(), CATALOG)
        except QueryError:
            refused += 1
    assert refused < 50


@given(st.integers(0, 2**32))
@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
def test_what_is_accepted_can_be_planned(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    try:
        query = parse(Writer(seed).select(), CATALOG)
    except QueryError as error:
        assert error.problems
        return
    folder = tmp_path_factory.getbasetemp()
    for fragments in (WHOLE, CUT):
        made = plan(query, CATALOG, fragments)
        for pipeline in (*made.pipelines, *(derived.pipeline for derived in made.derived)):
            check(pipeline, folder)
