from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from towpath.store.layout import Store
from towpath.store.private import private_folder, private_umask, share


@pytest.fixture(autouse=True)
def open_to_all() -> Iterator[None]:
    """The umask with which everybody may do everything."""
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_a_store_is_its_owners_alone_and_the_folders_around_it_are_as_ever(tmp_path: Path) -> None:
    store = Store(tmp_path / "around" / "a.store")
    with private_umask():
        store.lock().close()
    assert (mode(store.root), mode(store.root / "lock")) == (0o700, 0o600)
    assert mode(tmp_path / "around") == 0o777


def test_a_store_that_was_made_before_is_closed_with_all_it_has(tmp_path: Path) -> None:
    store, elsewhere = Store(tmp_path / "a.store"), tmp_path / "elsewhere"
    elsewhere.touch()
    folder = store.results("c0") / "e1"
    folder.mkdir(parents=True)
    (folder / "part").touch()
    (folder / "script").touch(mode=0o755)
    (folder / "link").symlink_to(elsewhere)
    (folder / "dangling").symlink_to(tmp_path / "nowhere")
    store.lock().close()
    assert [mode(path) for path in (store.root, folder, folder / "part", folder / "script")] == [
        0o700,
        0o700,
        0o600,
        0o700,
    ]
    assert mode(elsewhere) == 0o666  # a link in a store says nothing about who owns the file


def test_a_store_of_somebody_else_is_used_as_it_is_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(path: Path, mode: int) -> None:
        raise PermissionError(1, "Operation not permitted", str(path))

    (tmp_path / "a.store").mkdir()
    monkeypatch.setattr(Path, "chmod", refuse)
    private_folder(tmp_path / "a.store")
    assert "others may read what is in it" in caplog.text


def test_the_umask_from_before_comes_back_with_the_last_that_needed_another(tmp_path: Path) -> None:
    first, second = private_umask(), private_umask()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    (tmp_path / "still").touch()
    second.__exit__(None, None, None)
    (tmp_path / "after").touch()
    assert (mode(tmp_path / "still"), mode(tmp_path / "after")) == (0o600, 0o666)


def test_what_is_for_others_has_the_mode_that_its_user_wants(tmp_path: Path) -> None:
    os.umask(0o027)
    with private_umask():
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "part").touch()
        for path in (tmp_path / "out", tmp_path / "out" / "part"):
            share(path)
    assert (mode(tmp_path / "out"), mode(tmp_path / "out" / "part")) == (0o750, 0o640)
