from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from stores import SECOND, make_store
from towpath import Reader
from towpath.errors import StoreError, UnknownQueryError


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    return Reader(make_store(tmp_path / "store"))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("all", [1, 2, 3, 4, 5, 6]),
        ("since", [3, 4, 5, 6]),
        ("gone", [2, 3, 4]),
        ("new", []),
        ("never", []),
        ("replaced", [6]),
    ],
)
def test_a_query_answers_for_its_validity(reader: Reader, name: str, values: list[int]) -> None:
    assert reader.read(name).column("value").to_pylist() == values


def test_queries_are_listed_by_name_with_state_and_validity(reader: Reader) -> None:
    found = {q.name: (q.state, q.from_us, q.until_us) for q in reader.queries()}
    assert list(found) == sorted(found) == list(reader.names())
    assert found["all"] == ("standing", None, None)
    assert found["gone"] == ("withdrawn", 2 * SECOND, 5 * SECOND)
    assert found["new"][0] == "starting"
    assert found["replaced"] == ("standing", 6 * SECOND, None)
    assert {q.columns for q in reader.queries()} == {("value", "text")}


def test_an_unknown_query_is_reported_with_what_was_meant(reader: Reader) -> None:
    with pytest.raises(UnknownQueryError, match=r"no query named 'sinse' among its 6\n.*did you mean since\?"):
        reader.read("sinse")


def test_a_folder_that_is_no_store_is_reported(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no job here yet"):
        Reader(tmp_path)


def test_follow_ends_when_it_is_stopped(reader: Reader) -> None:
    stopped = threading.Event()
    rows = []
    for table in reader.follow("all", stopped):
        rows += table.column("value").to_pylist()
        if len(rows) == 6:
            stopped.set()
    assert rows == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("module", ["towpath.api.reader", "towpath.cli"])
def test_reading_needs_no_spark(module: str) -> None:
    program = f"import sys, {module}; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
