from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from towpath.errors import StoreError
from towpath.store.layout import Store

OWNER = """
import sys
from pathlib import Path
from towpath.store.layout import Store
lock = Store(Path(sys.argv[1])).lock()
print("locked", flush=True)
sys.stdin.read()
"""


def other_process(root: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "locked\n"
    return process


def test_copies_for_trials_that_were_left_are_dropped(tmp_path: Path) -> None:
    store = Store(tmp_path)
    (store.trial("c0") / "checkpoint").mkdir(parents=True)
    store.drop_trials()
    store.drop_trials()
    assert not store.trial("c0").parent.exists()


def test_a_store_has_one_owner(tmp_path: Path) -> None:
    with other_process(tmp_path) as owner:
        with pytest.raises(StoreError, match=f"another towpath runs on this store .process {owner.pid}."):
            Store(tmp_path).lock()
        assert owner.poll() is None
        owner.kill()
    with Store(tmp_path).lock():
        pass


def test_a_second_lock_in_one_process_is_refused_too(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.lock(), pytest.raises(StoreError):
        store.lock()
    store.lock().close()


def test_the_folder_is_made(tmp_path: Path) -> None:
    Store(tmp_path / "a" / "b").lock().close()
    assert (tmp_path / "a" / "b" / "lock").exists()
