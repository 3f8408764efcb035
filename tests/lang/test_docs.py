from __future__ import annotations

import re
from pathlib import Path

import pytest

from towpath.lang import parse
from towpath.schema import Stream, column_of

from .cases import catalog, tables

TEXT = (Path(__file__).parents[2] / "docs" / "language.md").read_text()
EXAMPLES = [
    block for block in re.findall(r"(?:^ {4}.*\n)+", TEXT, re.MULTILINE) if re.match(r"\s+SELECT (?!items)", block)
]
ORDERS = {"user.id": "bigint", "user.name.first": "string", "user.name.last": "string", "customer": "bigint"}
COLUMNS = {
    "orders": ORDERS | {"price": "decimal(10,2)", "at": "timestamp"},
    "events": {"payload": "string", "at": "timestamp"},
}
STREAMS = {
    name: Stream(name, tuple(column_of(*column) for column in columns.items()), "at")
    for name, columns in COLUMNS.items()
}


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 6


@pytest.mark.parametrize("sql", EXAMPLES)
def test_the_examples_of_the_guide_are_valid(sql: str) -> None:
    assert parse(sql, catalog() | tables() | STREAMS).columns
