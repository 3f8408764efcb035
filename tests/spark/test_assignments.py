"""Assignment tables: whatever comes and goes, a reader gets one version entire, and a change costs what it changes."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from towpath.plan.assignment import NOBODY, TableChange
from towpath.schema import Type
from towpath.spark.assignment_source import MANIFEST, read_manifest, read_table
from towpath.spark.assignments import RUN, publish

COLUMNS = {"_fragment": Type.INT, "_probe": Type.INT, "s_i0": Type.STRING}


def rows_of(fragment: int, boxes: int = 1) -> list[dict[str, int | str]]:
    return [{"_fragment": fragment, "_probe": n, "s_i0": f"s{fragment}"} for n in range(boxes)]


def read(folder: Path) -> tuple[int, dict[int, int]]:
    """The version, and how many rows each fragment has."""
    table = pa.Table.from_batches(list(read_table(str(folder))))
    found: dict[int, int] = {}
    for fragment in table["_fragment"].to_pylist():
        found[fragment] = found.get(fragment, 0) + 1
    assert found.pop(NOBODY) == 1
    return max(table["_version"].to_pylist()), found


@given(
    st.lists(
        st.tuples(st.lists(st.integers(0, 3), max_size=4), st.lists(st.integers(0, 10**6), max_size=4)),
        max_size=25,
    )
)
@settings(max_examples=25, deadline=None)
def test_a_table_is_what_came_without_what_left(steps: list[tuple[list[int], list[int]]]) -> None:
    with TemporaryDirectory() as name:
        folder, present, number = Path(name), dict[int, int](), 0
        publish(folder, 1, COLUMNS, TableChange([]))
        for version, (came, left) in enumerate(steps, start=2):
            gone = list(dict.fromkeys(sorted(present)[pick % len(present)] for pick in left if present))
            added = []
            for boxes in came:
                number += 1
                added += rows_of(number, boxes)
                present[number] = boxes
            for fragment in gone:
                del present[fragment]
            publish(folder, version, COLUMNS, TableChange(added, gone, version - 1))
            assert read(folder) == (version, {f: n for f, n in present.items() if n})


def test_what_is_written_does_not_depend_on_what_is_there(tmp_path: Path) -> None:
    def replaced(fragments: int, changes: int) -> int:
        folder = tmp_path / str(fragments)
        publish(folder, 1, COLUMNS, TableChange([row for n in range(fragments) for row in rows_of(n)]))
        first = publish(folder, 2, COLUMNS, TableChange(rows_of(fragments), [0], 1))
        assert first == 2
        return first + sum(
            publish(folder, n + 2, COLUMNS, TableChange(rows_of(fragments + n), [n], n + 1)) for n in range(1, changes)
        )

    small, large = replaced(2_000, 400), replaced(20_000, 400)
    assert large <= small, "nothing of the table itself is rewritten for a few changes"
    files = read_manifest(tmp_path / "20000")["files"]
    assert len(files) <= 3 * RUN
    assert {path.name for path in (tmp_path / "20000").iterdir()} == {MANIFEST, *(name for name, _ in files)}


def test_a_table_that_has_changed_by_a_quarter_is_written_anew(tmp_path: Path) -> None:
    publish(tmp_path, 1, COLUMNS, TableChange([row for n in range(1_000) for row in rows_of(n)]))
    for n in range(150):
        publish(tmp_path, n + 2, COLUMNS, TableChange(rows_of(1_000 + n), [n], n + 1))
    files = read_manifest(tmp_path)["files"]
    assert files[0][1] < 1_000 + 150, "those who left are out of it"
    assert read(tmp_path) == (151, dict.fromkeys(range(150, 1_150), 1))


def test_a_reader_that_comes_too_late_for_a_file_reads_the_next_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(tmp_path, 1, COLUMNS, TableChange(rows_of(1)))
    stale = read_manifest(tmp_path)
    publish(tmp_path, 2, COLUMNS, TableChange(rows_of(2)))
    looks = iter([stale])
    monkeypatch.setattr(
        "towpath.spark.assignment_source.read_manifest", lambda folder: next(looks, read_manifest(folder))
    )
    assert read(tmp_path) == (2, {2: 1})


@pytest.mark.parametrize("since", [2, 4])
def test_a_change_of_another_version_is_refused(tmp_path: Path, since: int) -> None:
    publish(tmp_path, 3, COLUMNS, TableChange(rows_of(1)))
    with pytest.raises(ValueError, match=f"a change of version {since}, and the table has version 3"):
        publish(tmp_path, 5, COLUMNS, TableChange(rows_of(2), [], since))
    assert read(tmp_path) == (3, {1: 1})
