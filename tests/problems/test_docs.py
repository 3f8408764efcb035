from __future__ import annotations

from pathlib import Path

import pytest

from towpath.config.settings import Settings
from towpath.placement.costs import METRICS
from towpath.problems import tables
from towpath.problems.entries import (
    LinkEntry,
    NetworkEntry,
    NodeEntry,
    OperatorEntry,
    QueryEntry,
    StreamEntry,
    TopEntry,
)
from towpath.problems.generate.registry import TOPOLOGIES, WORKLOADS

GUIDE = (Path(__file__).parents[2] / "docs" / "placement.md").read_text(encoding="utf-8")
ENTRIES = [TopEntry, NodeEntry, NetworkEntry, StreamEntry, QueryEntry, OperatorEntry]


@pytest.mark.parametrize("model", ENTRIES, ids=lambda model: model.__name__)
def test_every_key_is_in_the_guide(model: type[Settings]) -> None:
    rows = [line.split("|")[1] for line in GUIDE.splitlines() if line.startswith("| `")]
    keys = {field.alias or name for name, field in model.model_fields.items()}
    assert [key for key in keys if not any(f"`{key}`" in row for row in rows)] == []


def test_every_key_of_a_link_is_in_the_guide() -> None:
    keys = [field.alias or name for name, field in LinkEntry.model_fields.items()]
    assert [key for key in keys if f"{key}: " not in GUIDE] == []


@pytest.mark.parametrize("name", [*TOPOLOGIES, *WORKLOADS])
def test_every_parameter_is_in_the_guide(name: str) -> None:
    (row,) = [line for line in GUIDE.splitlines() if line.startswith(f"| `{name}` |")]
    parameters = {**TOPOLOGIES, **WORKLOADS}[name].parameters.model_fields
    assert [key for key in parameters if f"`{key}`" not in row] == []


@pytest.mark.parametrize("columns", [tables.NODES, tables.LINKS, tables.STREAMS, tables.QUERIES, tables.FRAGMENTS])
def test_every_column_is_in_the_guide(columns: tuple[tables.TableColumn, ...]) -> None:
    text = GUIDE.partition("### Tables")[2].partition("###")[0]
    assert [column.name for column in columns if f"`{column.name}`" not in text] == []


def test_every_metric_is_in_the_guide() -> None:
    lines = GUIDE.partition("## Metrics")[2].splitlines()
    expected = [f"| `{name}` | {m.unit} | {m.better} | {m.meaning} |" for name, m in METRICS.items()]
    assert [row for row in expected if row not in lines] == []
