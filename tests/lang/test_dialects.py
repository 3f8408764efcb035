"""Queries in the spelling of other dialects: each has its translation, or is refused with what is missing."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import duckdb
import pyarrow as pa
import pytest
import yaml

from towpath.arrow import ARROW
from towpath.errors import QueryError
from towpath.lang import parse, to_sql
from towpath.schema import Type
from towpath.verify import expected

from .cases import DATA, catalog

FILE = DATA / "dialects.yaml"
CASES = yaml.safe_load(FILE.read_text())
ROWS = yaml.safe_load((DATA / "dialect_rows.yaml").read_text())
# What a message says that names a feature, or a type that does not fit.
FEATURES = (
    *("needs a", "missing", "not supported", "another window", "each time", "job file", "milliseconds"),
    *("another thing", "systems differ", "the number of a group"),
)


def named(case: dict[str, Any]) -> str:
    return f"{case['dialect']}: {' '.join(case['sql'].split())[:80]}"


@pytest.mark.parametrize("case", [c for c in CASES if "missing" not in c], ids=named)
def test_a_query_of_another_dialect_is_translated(case: dict[str, Any]) -> None:
    query = parse(case["sql"], catalog())
    assert query.translated
    assert to_sql(query) == case["own"].rstrip("\n")
    own = parse(case["own"], catalog())
    assert own.selects == query.selects
    assert not own.translated


@pytest.mark.parametrize("case", [c for c in CASES if "missing" in c], ids=named)
def test_what_has_no_place_is_refused_by_its_name(case: dict[str, Any]) -> None:
    with pytest.raises(QueryError) as caught:
        parse(case["sql"], catalog())
    told = [f"{problem.message}; {problem.hint}" for problem in caught.value.problems]
    assert any(case["missing"] in text for text in told)
    assert all(any(word in text for word in FEATURES) for text in told), told


@pytest.mark.parametrize("case", [c for c in CASES if "rows" in c], ids=named)
def test_the_translation_answers_as_the_text_says(case: dict[str, Any]) -> None:
    query = parse(case["sql"], catalog())
    answer = expected(database(), query, catalog())
    assert Counter(tuple(map(plain, row.values())) for row in answer.to_pylist()) == Counter(map(tuple, case["rows"]))


def database() -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    for name, given in ROWS.items():
        columns = catalog()[name].columns
        values = [dict(zip(given["columns"], row, strict=True)) for row in given["rows"]]
        arrays = [pa.array([value(v.get(c.name), c.type) for v in values], ARROW[c.type]) for c in columns]
        con.register(name, pa.table(arrays, names=[c.name for c in columns]))
    return con


def value(given: Any, type_: Type) -> Any:
    return round(given * 1_000_000) if type_ is Type.TIMESTAMP and given is not None else given


def plain(found: Any) -> Any:
    return found.replace(tzinfo=UTC).timestamp() if isinstance(found, datetime) else found


def update() -> None:
    """Writes what the translations are now into the file; read the difference before you keep it."""
    blocks = FILE.read_text().split("\n- ")
    for number, case in enumerate(CASES, 1):
        if "missing" in case:
            continue
        own = "".join(f"    {line}\n" for line in to_sql(parse(case["sql"], catalog())).splitlines())
        head, *rows = blocks[number].split("\n  rows:")
        head, *_ = head.split("\n  own: ")
        blocks[number] = "\n  rows:".join([f"{head.rstrip()}\n  own: |-\n{own}".rstrip("\n"), *rows])
    FILE.write_text("\n- ".join(blocks).rstrip("\n") + "\n")


if __name__ == "__main__":
    update()
