"""The queries folder: what lies there is taken in or reported, the same at the start of a job and while it runs."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import MagicMock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from towpath.config import sqlfiles
from towpath.control.act.folder import EVERY_S, Changes, QueryFolder

SQL = "SELECT value FROM s"


def test_what_is_there_at_the_start_is_no_change(tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text("SELECT 1")
    assert QueryFolder(tmp_path, every_s=0).changes() == Changes()


def test_what_came_since_the_job_was_loaded_is_a_change(tmp_path: Path) -> None:
    loaded = sqlfiles.usable(tmp_path, frozenset())
    (tmp_path / "q.sql").write_text("SELECT 1")
    assert QueryFolder(tmp_path, loaded).changes() == Changes({"q": "SELECT 1"})


def test_files_that_come_change_and_go(tmp_path: Path) -> None:
    (tmp_path / "old.sql").write_text("SELECT 1")
    folder = QueryFolder(tmp_path, every_s=0)
    (tmp_path / "new.sql").write_text("SELECT 2")
    (tmp_path / "notes.txt").write_text("not a query")
    (tmp_path / ".#new.sql").write_text("of an editor")
    assert folder.changes() == Changes({"new": "SELECT 2"})
    assert folder.changes() == Changes()
    (tmp_path / "new.sql").write_text("SELECT 22")
    (tmp_path / "old.sql").unlink()
    assert folder.changes() == Changes({"new": "SELECT 22"}, ("old",))


def test_a_text_of_the_same_length_is_a_change(tmp_path: Path) -> None:
    file = tmp_path / "q.sql"
    file.write_text("SELECT 1")
    folder = QueryFolder(tmp_path, every_s=0)
    file.write_text("SELECT 2")
    os.utime(file, ns=(1, 1))
    assert folder.changes() == Changes({"q": "SELECT 2"})


def test_an_empty_file_waits_for_its_text(tmp_path: Path) -> None:
    folder = QueryFolder(tmp_path, every_s=0)
    (tmp_path / "q.sql").touch()
    assert folder.changes() == Changes()
    (tmp_path / "q.sql").write_text("SELECT 1")
    assert folder.changes() == Changes({"q": "SELECT 1"})


def make_socket(path: Path) -> None:
    os.mknod(path, stat.S_IFSOCK | 0o600)


def make_huge(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 40)  # a hole: it takes no room, and would take all memory


ODD: dict[str, tuple[Callable[[Path], object], str]] = {
    "folder": (Path.mkdir, "expected a file, got a folder"),
    "pipe": (os.mkfifo, "expected a file, got a pipe"),
    "socket": (make_socket, "cannot be read"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "expected a file, got a device"),
    "latin-1": (lambda path: path.write_bytes("SELECT 'ü'".encode("latin-1")), "byte 9 is 0xfc, which is not UTF-8"),
    "NUL": (lambda path: path.write_bytes(b"SELECT\0"), "expected text, got a NUL byte"),
    "blank": (lambda path: path.write_text(" \n"), "expected a SELECT statement, got nothing"),
    "huge": (make_huge, "expected at most 1,048,576 bytes of SQL, got more"),
    "dangling": (lambda path: path.symlink_to("nowhere"), "a link to a file that is not there"),
    "loop": (lambda path: path.symlink_to(path.name), "cannot be read: Too many levels of symbolic links"),
}
NAMES = ["good", "Good", "with blank", "ü", "-rf", "x" * 201, "tab\t", b"\xff".decode(errors="surrogateescape"), "own"]


@pytest.mark.parametrize("kind", ODD)
def test_what_is_odd_is_reported_once_and_all_else_goes_on(tmp_path: Path, kind: str) -> None:
    make, said = ODD[kind]
    folder = QueryFolder(tmp_path, every_s=0)
    make(tmp_path / "x.sql")
    (tmp_path / "good.sql").write_text(SQL)
    changes = folder.changes()
    assert changes.written == {"good": SQL}
    (problem,) = changes.problems
    assert problem.where == "queries_folder, x.sql" and said in problem.message and problem.hint
    assert folder.changes() == Changes()
    assert sqlfiles.usable(tmp_path, frozenset()).problems == (problem,), "the same at the start"


def test_a_file_that_cannot_be_read_is_taken_in_once_it_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = QueryFolder(tmp_path, every_s=0)
    (tmp_path / "x.sql").write_text(SQL)
    (tmp_path / "x.sql").chmod(0)
    with monkeypatch.context() as strict:  # root may read everything
        strict.setattr(os, "open", MagicMock(side_effect=PermissionError(errno.EACCES, "Permission denied")))
        (problem,) = folder.changes().problems
    assert problem.message == "cannot be read: Permission denied"
    (tmp_path / "x.sql").chmod(0o600)
    assert folder.changes() == Changes({"x": SQL})


def test_a_link_is_followed_once_it_leads_somewhere(tmp_path: Path) -> None:
    folder = QueryFolder(tmp_path, every_s=0)
    (tmp_path / "x.sql").symlink_to("target")
    assert len(folder.changes().problems) == 1
    (tmp_path / "target").write_text(SQL)
    assert folder.changes() == Changes({"x": SQL})


def test_a_file_that_vanishes_between_two_looks_is_no_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, look = QueryFolder(tmp_path, every_s=0), sqlfiles.look
    (tmp_path / "x.sql").write_text(SQL)

    def look_and_delete(path: Path) -> dict[str, sqlfiles.Stamp]:
        found = look(path)
        (tmp_path / "x.sql").unlink()
        return found

    with monkeypatch.context() as racing:
        racing.setattr(sqlfiles, "look", look_and_delete)
        assert folder.changes() == Changes()
    assert folder.changes() == Changes(removed=("x",))


def test_a_folder_that_is_away_is_reported_once_and_takes_nothing_with_it(tmp_path: Path) -> None:
    path = tmp_path / "queries"
    path.mkdir()
    (path / "q.sql").write_text(SQL)
    folder = QueryFolder(path, every_s=0)
    path.rename(tmp_path / "elsewhere")
    changes = folder.changes()
    (problem,) = changes.problems
    assert changes.removed == () and "cannot be looked into: No such file or directory" in problem.message
    assert folder.changes() == Changes()
    (tmp_path / "elsewhere").rename(path)
    assert folder.changes() == Changes()
    (path / "q.sql").unlink()
    assert folder.changes() == Changes(removed=("q",))


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.sampled_from(NAMES), st.sampled_from(["good", *ODD]), max_size=6))
def test_a_running_job_takes_in_what_its_next_start_does(entries: dict[str, str]) -> None:
    taken = frozenset({"own"})  # of the job file
    with TemporaryDirectory() as place:
        folder = QueryFolder(Path(place), sqlfiles.usable(Path(place), taken), every_s=0)
        for name, kind in entries.items():
            make = ODD[kind][0] if kind != "good" else lambda path: path.write_text(SQL)
            make(Path(place) / f"{name}.sql")
        live, start = folder.changes(), sqlfiles.usable(Path(place), taken)
        assert (live.written, live.problems) == (start.queries, start.problems)
        assert set(live.written) == {n for n, kind in entries.items() if kind == "good" and n in ("good", "Good")}
        assert len(live.written) + len(live.problems) == len(entries), "taken in or reported"
        for problem in live.problems:
            str(problem).encode()


def test_a_folder_is_looked_through_when_something_came_or_went_and_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "old.sql").write_text("SELECT 1")
    os.utime(tmp_path, ns=(0, 0))
    now, looks, look = [0.0], list[Path](), sqlfiles.look
    monkeypatch.setattr("towpath.control.act.folder.time.monotonic", lambda: now[0])
    monkeypatch.setattr(sqlfiles, "look", lambda path: looks.append(path) or look(path))
    folder = QueryFolder(tmp_path)
    folder.changes()
    looks.clear()
    for _ in range(100):
        assert folder.changes() == Changes()
    assert looks == []
    (tmp_path / "new.sql").write_text("SELECT 2")
    assert folder.changes() == Changes({"new": "SELECT 2"})
    (tmp_path / "old.sql").write_text("SELECT 1 + 1")
    now[0] += EVERY_S
    assert folder.changes() == Changes({"old": "SELECT 1 + 1"})
    assert len(looks) == 2
