from __future__ import annotations

import os
from pathlib import Path

from towpath.control.folder import Changes, QueryFolder


def test_what_is_there_at_the_start_is_no_change(tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text("SELECT 1")
    assert QueryFolder(tmp_path).changes() == Changes()


def test_files_that_come_change_and_go(tmp_path: Path) -> None:
    (tmp_path / "old.sql").write_text("SELECT 1")
    folder = QueryFolder(tmp_path)
    (tmp_path / "new.sql").write_text("SELECT 2")
    (tmp_path / "notes.txt").write_text("not a query")
    assert folder.changes() == Changes({"new": "SELECT 2"})
    assert folder.changes() == Changes()
    (tmp_path / "new.sql").write_text("SELECT 22")
    (tmp_path / "old.sql").unlink()
    assert folder.changes() == Changes({"new": "SELECT 22"}, ("old",))


def test_a_text_of_the_same_length_is_a_change(tmp_path: Path) -> None:
    file = tmp_path / "q.sql"
    file.write_text("SELECT 1")
    folder = QueryFolder(tmp_path)
    file.write_text("SELECT 2")
    os.utime(file, ns=(1, 1))
    assert folder.changes() == Changes({"q": "SELECT 2"})


def test_an_empty_file_waits_for_its_text(tmp_path: Path) -> None:
    folder = QueryFolder(tmp_path)
    (tmp_path / "q.sql").touch()
    assert folder.changes() == Changes()
    (tmp_path / "q.sql").write_text("SELECT 1")
    assert folder.changes() == Changes({"q": "SELECT 1"})
