"""Versions of a table, and which of them a micro-batch has."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from towpath.tables import versions
from towpath.tables.versions import Note


def table(*keys: int) -> pa.Table:
    return pa.table({"key": pa.array(keys, pa.int64())})


def at(version: int, begins: str = "") -> Note:
    return Note(version, begins)


def test_the_same_rows_are_no_new_version(tmp_path: Path) -> None:
    assert not versions.has_version(tmp_path)
    assert [versions.publish(tmp_path, table(*keys)) for keys in ((1,), (1,), (2,), (), ())] == [1, None, 2, 3, None]
    assert versions.current(tmp_path) == 3
    assert [versions.load(tmp_path, n).to_pydict() for n in (1, 3)] == [{"key": [1]}, {"key": []}]


def test_a_repeated_micro_batch_has_the_version_that_it_had(tmp_path: Path) -> None:
    assert versions.pinned(tmp_path, 0, lambda: at(1)) == 1
    assert versions.pinned(tmp_path, 1, lambda: at(2, "here")) == 2
    assert versions.pinned(tmp_path, 1, lambda: at(3, "there")) == 2
    assert versions.changes(tmp_path) == {0: at(1), 1: at(2, "here")}


def test_of_several_readers_one_decides(tmp_path: Path) -> None:
    together, found = threading.Barrier(8), []

    def read(version: int) -> None:
        def now() -> Note:
            together.wait()  # everybody has found that there is no note
            return at(version)

        found.append(versions.pinned(tmp_path, 5, now))

    threads = [threading.Thread(target=read, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert {*found} == {versions.newest(tmp_path)}
    assert [name for name in os.listdir(tmp_path) if name != "5"] == [], "what did not win is gone"


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=30))
def test_the_record_says_which_version_every_micro_batch_had(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, bool]]
) -> None:
    """`steps`: by how much the version in force rises before a micro-batch, and whether that one is repeated."""
    pins, had, in_force = tmp_path_factory.mktemp("pins"), [], 1
    for batch, (rises, is_repeated) in enumerate(steps):
        in_force += rises
        had.append(versions.pinned(pins, batch, lambda v=in_force, b=batch: at(v, str(b))))
        if is_repeated:
            in_force += 1
            assert versions.pinned(pins, batch, lambda v=in_force: at(v)) == had[-1]
    known = versions.changes(pins)
    read = [known[max(b for b in known if b <= batch)].version for batch in range(len(steps))]
    assert read == had
    assert len(known) <= len({*had}) + 1, "no more than the changes and the newest"
    assert versions.newest(pins) == (had[-1] if had else None)


def test_versions_stay_as_long_as_somebody_can_need_them(tmp_path: Path) -> None:
    for keys in ((1,), (2,), (3,), (4,)):
        versions.publish(tmp_path, table(*keys))
    for number in (1, 2, 4):  # long replaced; 3 was a moment ago
        os.utime(versions.version_file(tmp_path, number), (0, 0))
    versions.sweep(tmp_path, read={2})
    assert sorted(path.name for path in tmp_path.glob("*.arrow")) == ["2.arrow", "3.arrow", "4.arrow"]
    assert versions.current(tmp_path) == 4
