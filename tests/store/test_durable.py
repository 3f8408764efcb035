"""Files that appear as a whole, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from towpath.store import durable


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("lasting", [True, False])
@pytest.mark.parametrize("alone", [True, False])
def test_nothing_is_there_until_it_is_whole(tmp_path: Path, *, lasting: bool, alone: bool) -> None:
    final = tmp_path / "new folder" / "part-1.parquet"
    with durable.writing(final, lasting=lasting, alone=alone) as scratch:
        scratch.write_text("half")
        assert not final.exists()
        scratch.write_text("all of it")
    assert final.read_text() == "all of it"
    assert names(final.parent) == ["part-1.parquet"]


def test_what_fails_leaves_what_was_there_before(tmp_path: Path) -> None:
    final = tmp_path / "state.json"
    durable.write_json(final, {"n": 1})
    with pytest.raises(ZeroDivisionError), durable.writing(final) as scratch:
        scratch.write_text("half")
        raise ZeroDivisionError
    assert final.read_text() == '{"n": 1}'
    assert names(tmp_path) == ["state.json"]


def test_who_reads_whole_folders_passes_scratch_files_over(tmp_path: Path) -> None:
    with durable.writing(tmp_path / "a.parquet") as scratch:
        scratch.touch()
        assert scratch.name.startswith(".") and not scratch.suffix
        assert not list(tmp_path.glob("*.parquet"))


def test_two_at_once_do_not_meet(tmp_path: Path) -> None:
    final = tmp_path / "note"
    with durable.writing(final, alone=False) as one, durable.writing(final, alone=False) as other:
        one.write_text("one")
        other.write_text("other")
    assert final.read_text() == "one", "the last that was finished"


def test_what_has_to_last_is_on_the_disk_before_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    replace = durable.os.replace
    monkeypatch.setattr(durable, "sync", lambda path: done.append(f"sync {path.name}"))
    monkeypatch.setattr(durable.os, "replace", lambda a, b: (done.append(f"name {b.name}"), replace(a, b)))
    for lasting in (True, False):
        with durable.writing(tmp_path / "f", lasting=lasting) as scratch:
            scratch.touch()
    assert done == ["sync .tmp-f", "name f", f"sync {tmp_path.name}", "name f"]
