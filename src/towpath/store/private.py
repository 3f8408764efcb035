"""What a store has is its owner's alone: results, logs, and passwords that stand in a job file.

Many write into it: Python, SQLite, DuckDB, the JVM and its workers. So it is not left to each of them: whoever runs a
job does so under a umask that leaves nothing to others, which the processes inherit that it starts.
"""

from __future__ import annotations

import logging
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

log = logging.getLogger(__name__)

UMASK = 0o077
OTHERS = 0o077  # bits of a mode

_counting = threading.Lock()
_users = 0
_usual: int | None = None  # the umask from before, while there is a user


@contextmanager
def private_umask() -> Iterator[None]:
    """Within this, what this process and those that it starts make is their owner's alone.

    A umask is the process's, not the thread's: of several that overlap, the last one out puts the old one back.
    """
    global _users, _usual
    with _counting:
        if _users == 0:
            _usual = os.umask(UMASK)
        _users += 1
    try:
        yield
    finally:
        with _counting:
            _users -= 1
            if _users == 0 and _usual is not None:
                os.umask(_usual)
                _usual = None


def share(path: Path) -> None:
    """Gives what was made under the private umask the mode that its user's own would have given it."""
    with _counting:
        if _usual is not None:
            path.chmod((0o777 if path.is_dir() else 0o666) & ~_usual)


def write_private(path: Path, text: str) -> None:
    """A new file; one that was left there could have any mode, or be open to somebody."""
    path.unlink(missing_ok=True)
    with open(path, "x", encoding="utf-8", opener=private_opener) as file:
        file.write(text)


def private_opener(path: str, flags: int) -> int:
    """For `open`, where the umask may be the user's."""
    return os.open(path, flags, 0o666 & ~UMASK)


def private_folder(path: Path) -> None:
    """Makes a folder that its owner alone can look into; one that was made before becomes so, with all it has."""
    for around in reversed([folder for folder in path.parents if not folder.exists()]):
        around.mkdir(exist_ok=True)
        share(around)
    path.mkdir(mode=0o777 & ~UMASK, exist_ok=True)
    if not path.stat().st_mode & OTHERS:
        return
    try:
        _close(path)  # first: nobody comes past it to the rest
        for folder, folders, files in os.walk(path):
            for name in (*folders, *files):
                with suppress(FileNotFoundError):
                    _close(Path(folder, name))
    except PermissionError as error:
        log.warning("%s: others may read what is in it, and only its owner can change that: %s", path, error)


def _close(path: Path) -> None:
    mode = path.lstat().st_mode
    if mode & OTHERS and not stat.S_ISLNK(mode):
        path.chmod(stat.S_IMODE(mode) & ~OTHERS)
