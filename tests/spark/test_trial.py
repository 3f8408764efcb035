"""The copy of a checkpoint that a carrier is tried out on."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import MagicMock

import pytest

from towpath.spark import trial


def checkpoint(folder: Path) -> Path:
    (folder / "checkpoint" / "offsets").mkdir(parents=True)
    (folder / "checkpoint" / "offsets" / "0").write_text("offsets")
    (folder / "i0").mkdir()
    (folder / "i0" / "files").write_text("first\n")
    (folder / "results" / "batch=0").mkdir(parents=True)
    return folder


def test_what_is_written_to_the_copy_does_not_reach_the_carrier(tmp_path: Path) -> None:
    epoch, copy = checkpoint(tmp_path / "e0"), tmp_path / "trial"
    trial.copy(epoch, copy)
    with (copy / "i0" / "files").open("a") as index:
        index.write("second\n")
    (copy / "checkpoint" / "offsets" / "0").unlink()
    (copy / "checkpoint" / "offsets" / "1").write_text("more")
    assert (epoch / "i0" / "files").read_text() == "first\n"
    assert [file.name for file in (epoch / "checkpoint" / "offsets").iterdir()] == ["0"]
    assert not (copy / "results").exists()


def test_each_copy_is_fresh_and_one_of_nothing_is_empty(tmp_path: Path) -> None:
    epoch, copy = checkpoint(tmp_path / "e0"), tmp_path / "trial"
    trial.copy(epoch, copy)
    (copy / "checkpoint" / "offsets" / "1").write_text("more")
    trial.copy(epoch, copy)
    assert [file.name for file in (copy / "checkpoint" / "offsets").iterdir()] == ["0"]
    trial.copy(tmp_path / "e1", copy)
    assert list(copy.iterdir()) == []


def test_a_file_system_without_links_gets_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.link", MagicMock(side_effect=OSError("not supported")))
    trial.copy(checkpoint(tmp_path / "e0"), tmp_path / "trial")
    assert (tmp_path / "trial" / "checkpoint" / "offsets" / "0").read_text() == "offsets"
