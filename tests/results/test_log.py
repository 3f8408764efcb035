from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path
from unittest import mock

import pytest

from towpath.errors import StoreError
from towpath.results import Position, committed, log

from .logs import Row, part, write_batch


def touch(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()


def raw(number: int) -> tuple[str, str]:
    return f"batch={number}/part-0.parquet", f"batch={number}/_SUCCESS"


def merged(first: int, last: int) -> str:
    return f"compact/{first:012d}-{last:012d}.parquet"


@pytest.mark.parametrize(("epochs", "newest"), [([], "."), ([0], "e0/results"), ([8, 10, 9], "e10/results")])
def test_what_the_newest_epoch_has_written_counts(tmp_path: Path, epochs: list[int], newest: str) -> None:
    for name in (".", *(f"e{epoch}/results" for epoch in epochs)):
        touch(tmp_path / name, *raw(0))
    assert committed(tmp_path) == [tmp_path / newest / "batch=0" / "part-0.parquet"]


CASES = {
    "nothing": ([], []),
    "numbers, not letters, order batches": ([*raw(10), *raw(9)], ["batch=9/part-0.parquet", "batch=10/part-0.parquet"]),
    "a batch counts once it is committed": ([*raw(1), "batch=2/part-0.parquet"], ["batch=1/part-0.parquet"]),
    "a batch without rows has no file": ([*raw(1), "batch=2/_SUCCESS"], ["batch=1/part-0.parquet"]),
    "hidden files are not read": (
        [*raw(1), "batch=1/.part-0.parquet.crc", "batch=1/_part.parquet", "batch=1/.x.parquet", ".x/y", "other/z"],
        ["batch=1/part-0.parquet"],
    ),
    "unfinished merges are not read": (
        [*raw(1), f"compact/.tmp-{0:012d}-{1:012d}.parquet", "compact/.tmp-spill/x"],
        ["batch=1/part-0.parquet"],
    ),
    "merged batches are not read again": (
        [*raw(1), *raw(2), *raw(3), merged(0, 2)],
        [merged(0, 2), "batch=3/part-0.parquet"],
    ),
    "merged files inside another are not read": (
        [merged(0, 4), merged(5, 9), merged(0, 9), merged(10, 12)],
        [merged(0, 9), merged(10, 12)],
    ),
    "gaps are fine": (
        [*raw(40), merged(3, 9), merged(20, 30)],
        [merged(3, 9), merged(20, 30), "batch=40/part-0.parquet"],
    ),
}


@pytest.mark.parametrize(("present", "expected"), CASES.values(), ids=CASES)
def test_what_counts(tmp_path: Path, present: list[str], expected: list[str]) -> None:
    touch(tmp_path, *present)
    assert [str(file.relative_to(tmp_path)) for file in committed(tmp_path)] == expected


def test_a_log_that_was_never_written_is_empty(tmp_path: Path) -> None:
    assert committed(tmp_path / "no" / "such" / "log") == []


@pytest.mark.parametrize("moment", range(10))
def test_a_listing_that_a_compaction_overtakes_misses_nothing(tmp_path: Path, moment: int) -> None:
    """Two batches are merged and removed after any one of the looks that a listing consists of."""
    touch(tmp_path, *raw(0), *raw(1), *raw(2))
    looks, entries = itertools.count(), log._entries

    def overtaken(folder: Path) -> list[str]:
        found = entries(folder)
        if next(looks) == moment:
            touch(tmp_path, merged(0, 1))
            shutil.rmtree(tmp_path / "batch=0")
            (tmp_path / "batch=1/part-0.parquet").unlink()
        return found

    with mock.patch.object(log, "_entries", overtaken):
        found = [str(file.relative_to(tmp_path)) for file in committed(tmp_path)]
    before = [f"batch={n}/part-0.parquet" for n in range(3)]
    assert found in ([merged(0, 1), before[2]], before)


def test_a_batch_hidden_by_a_changing_directory_is_found(tmp_path: Path) -> None:
    touch(tmp_path, *raw(7), *raw(8))
    hidden, entries = [True], log._entries

    def changing(folder: Path) -> list[str]:
        found = entries(folder)
        return (
            [name for name in found if name != "batch=7"] if folder == tmp_path and hidden and hidden.pop() else found
        )

    with mock.patch.object(log, "_entries", changing):
        assert len(committed(tmp_path)) == 2


def test_newer_batches_do_not_disturb_a_listing(tmp_path: Path) -> None:
    numbers, entries = iter(range(1_000_000)), log._entries

    def growing(folder: Path) -> list[str]:
        touch(tmp_path, *raw(next(numbers)))
        return entries(folder)

    with mock.patch.object(log, "_entries", growing):
        assert committed(tmp_path)


def test_a_listing_that_never_settles_is_an_error(tmp_path: Path) -> None:
    numbers, entries = iter(range(1_000_000)), log._entries

    def merging(folder: Path) -> list[str]:
        number = next(numbers)
        touch(tmp_path, merged(number, number))
        return entries(folder)

    with mock.patch.object(log, "_entries", merging), pytest.raises(StoreError, match="several processes compact"):
        committed(tmp_path)


def test_a_position_survives_a_move_of_the_store(tmp_path: Path) -> None:
    def parts(store: Path) -> list[log.Part]:
        return [part(store / "results/a", 1), part(store / "results/b", 2, from_us=5)]

    old, new = tmp_path / "old", tmp_path / "else" / "where"
    position = Position().moved(zip(parts(old), (7, 8), strict=True))
    text = json.dumps(position.to_json(old / "sinks"))
    moved = Position.from_json(json.loads(text), new / "sinks")
    assert [moved.of(p) for p in parts(new)] == [7, 8]
    assert str(tmp_path) not in text


def test_a_position_knows_a_part_after_its_end_was_set(tmp_path: Path) -> None:
    position = Position().moved([(part(tmp_path, 1, from_us=5), 7)])
    assert position.of(part(tmp_path, 1, from_us=5, until_us=9)) == 7
    assert position.of(part(tmp_path, 1, from_us=9)) == log.NOTHING


def test_what_a_reader_still_needs(tmp_path: Path) -> None:
    a, b, new = part(tmp_path / "a", 1), part(tmp_path / "b", 1), part(tmp_path / "a", 2)
    position = Position().moved([(a, 7), (b, 3)])
    assert position.needed_from(tmp_path / "a", [a, b]) == 8
    assert position.needed_from(tmp_path / "a", [a, b, new]) == 0
    assert position.needed_from(tmp_path / "c", [a, b]) is None


def test_the_log_of_the_tests_is_what_spark_writes(tmp_path: Path) -> None:
    write_batch(tmp_path, 3, [Row(1, 2, 3)])
    assert [file.name[:4] for file in committed(tmp_path)] == ["part", "part"]
