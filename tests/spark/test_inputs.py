"""Where a carrier's input keeps what it needs, without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from towpath.spark import inputs
from towpath.spark.inputs import TICKS_KEPT, InputPlace


def place(folder: Path) -> InputPlace:
    (folder / "ticks").mkdir()
    signs = (folder / "drain", folder / "rejected", folder / "offsets")
    return InputPlace(folder, folder / "files", *signs, 0, 1, lambda streams: "", {})


def test_ticks_are_few_and_none_has_the_name_of_another(tmp_path: Path) -> None:
    input_, names = place(tmp_path), set[str]()
    for event_us in range(3 * TICKS_KEPT):
        input_.tick(event_us)
        newest = max(input_.ticks.iterdir())
        assert newest.read_text() == f"{event_us}\n"
        assert newest.name not in names
        names.add(newest.name)
    assert len(list(input_.ticks.iterdir())) == TICKS_KEPT + 1


def test_a_portion_is_bounded_by_bytes_and_by_the_number_of_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "MOST_BYTES", 1_000)
    monkeypatch.setattr(inputs, "MOST_FILES", 10)
    assert inputs._most_bytes("s3a://bucket/bids") == 1_000
    for n in range(30):
        (tmp_path / f"{n}.parquet").write_bytes(b"x" * 20)
    assert inputs._most_bytes(str(tmp_path)) == 200, "ten of them"
    (tmp_path / "large.parquet").write_bytes(b"x" * 100_000)
    assert inputs._most_bytes(str(tmp_path)) == 1_000
