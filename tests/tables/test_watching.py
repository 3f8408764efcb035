"""Tables are read again when their files have changed; what cannot be read changes nothing and is said."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from towpath.errors import JobError
from towpath.schema import Type
from towpath.store.layout import Store
from towpath.tables import versions
from towpath.tables.definition import TableDef, TableText, define
from towpath.tables.watching import LOOK_S, TableNews, Tables, refuse_bad

GOOD = "key,value\n1,one\n2,two\n"


class Watch:
    def __init__(self, folder: Path, format_: str = "csv") -> None:
        self.file = folder / f"side.{format_}"
        self.store, self.now = Store(folder / "store"), 0.0
        self.wall = 0.0  # before any file was written
        self.tables = self.opened(format_)

    def opened(self, format_: str = "csv") -> Tables:
        self.definition = definition(self.file, format_)
        self.folder = self.store.table(self.definition.table)
        return Tables(self.store, {"side": self.definition}, lambda: self.now, lambda: self.wall)

    def look(self, times: int = 1) -> TableNews:
        for _ in range(times):
            self.now += LOOK_S
            news = self.tables.look()
        return news

    def write(self, text: str) -> None:
        self.file.write_text(text)

    @property
    def rows(self) -> list[dict[str, object]]:
        return versions.load(self.folder, versions.current(self.folder)).to_pylist()


def definition(file: Path, format_: str = "csv") -> TableDef:
    source = {"type": "file", "path": str(file), "format": format_}
    text = TableText.model_validate({"source": source, "schema": {"key": "bigint", "value": "string"}})
    return define("side", text)


@pytest.fixture
def watch(tmp_path: Path) -> Watch:
    found = Watch(tmp_path)
    found.write(GOOD)
    found.tables.open()
    return found


def test_a_change_is_taken_in_when_the_file_has_been_left_alone(watch: Watch) -> None:
    assert watch.look() == TableNews((), {"side": None})
    watch.write(GOOD + "3,th")
    assert not watch.look().published, "somebody may be writing"
    watch.write(GOOD + "3,three\n")
    assert not watch.look().published, "somebody was writing"
    assert watch.look().published == (f"side has version 2, from {watch.file}",)
    assert watch.rows[-1] == {"key": 3, "value": "three"}
    assert not watch.look(3).published


def test_a_file_that_was_written_a_while_ago_is_taken_in_at_once(watch: Watch) -> None:
    watch.write(GOOD + "3,three\n")
    watch.wall = watch.file.stat().st_mtime + LOOK_S
    assert watch.look().published


def test_nobody_looks_all_the_time(watch: Watch) -> None:
    watch.look()
    watch.write(GOOD + "3,three\n")
    assert watch.tables.look() == TableNews()


BAD = {
    "a value of another type": (GOOD + "x,three\n", 'line 4: Error when converting column "key"'),
    "half a line": (GOOD + "3", "line 4: "),
    "another column": ("key,name\n1,one\n", "it has no column value; it has key, name"),
    "nothing": ("", "it is empty, and has not even the line of column names"),
    "no text": (None, "there is no file"),
}


@pytest.mark.parametrize("bad", BAD)
def test_what_cannot_be_read_leaves_the_last_version_in_force(watch: Watch, bad: str) -> None:
    text, reason = BAD[bad]
    watch.file.unlink() if text is None else watch.write(text)
    news = watch.look(3)
    trouble = news.troubles["side"]
    assert trouble is not None
    assert reason in trouble
    assert trouble.endswith("; version 1 stays in force")
    assert len(watch.rows) == 2
    again = watch.opened()
    again.open()  # a job that is started again goes on, too
    assert len(watch.rows) == 2
    watch.write(GOOD + "3,three\n")
    assert watch.look(3).troubles == {"side": None}
    assert len(watch.rows) == 3


@pytest.mark.parametrize("bad", BAD)
def test_a_table_that_never_could_be_read_is_refused(tmp_path: Path, bad: str) -> None:
    watch, (text, reason) = Watch(tmp_path), BAD[bad]
    if text is not None:
        watch.write(text)
    for refused in (watch.tables.open, lambda: refuse_bad({"side": watch.definition})):
        with pytest.raises(JobError) as caught:
            refused()
        (problem,) = caught.value.problems
        assert problem.where == "tables.side"
        assert reason in problem.message
        assert problem.hint


def test_a_parquet_file_that_is_half_there(tmp_path: Path) -> None:
    watch = Watch(tmp_path, "parquet")
    pq.write_table(pa.table({"key": pa.array([1], pa.int64()), "value": ["one"]}), watch.file)
    watch.tables.open()
    watch.file.write_bytes(watch.file.read_bytes()[:-20])
    trouble = watch.look(3).troubles["side"]
    assert trouble is not None
    assert "cannot be read" in trouble
    assert watch.rows == [{"key": 1, "value": "one"}]


def test_a_header_without_rows_is_an_empty_table(watch: Watch) -> None:
    watch.write("key,value\n")
    watch.look(3)
    assert watch.rows == []


def test_another_schema_is_another_table(watch: Watch) -> None:
    source = {"type": "file", "path": str(watch.file), "format": "csv"}
    other = define("side", TableText.model_validate({"source": source, "schema": {"key": "int", "value": "string"}}))
    assert watch.store.table(other.table) != watch.folder
    assert other.table.column("key").type is Type.INT  # type: ignore[union-attr]
