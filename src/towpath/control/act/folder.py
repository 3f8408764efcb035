"""The queries folder while a job runs: writing a file submits its query, deleting it withdraws the query."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from towpath.config import sqlfiles
from towpath.config.sqlfiles import SUFFIX, Contents, Stamp
from towpath.errors import Mistake

EVERY_S = 2.0  # a file that is written in place is noticed so soon
MOST_SHARE = 0.02  # of the time, for looking through a folder that nothing came to


@dataclass(frozen=True)
class Changes:
    written: dict[str, str] = field(default_factory=dict)  # name -> SQL
    removed: tuple[str, ...] = ()  # names
    problems: tuple[Mistake, ...] = ()  # with files, or with the folder itself; each is reported once


class QueryFolder:
    """Looks instead of being notified: a folder on shared storage notifies nobody of its changes.

    A folder of many files is not looked through every time. Its own time shows that files came or went; of those
    that were written in place nothing shows, so there is a look at all of them now and then.
    """

    def __init__(self, path: Path, known: Contents | None = None, every_s: float = EVERY_S) -> None:
        """`known`: what was there when the job was loaded."""
        known = known or sqlfiles.usable(path, frozenset())
        self._path = path
        self._known = known.stamps
        self._taken = known.taken
        self._unreachable: Mistake | None = None
        self._every_s = every_s
        self._changed: int | None = None  # the folder's own time when it was last looked through
        self._next = 0.0  # when it is looked through at the latest

    def file(self, name: str) -> Path:
        return self._path / f"{name}{SUFFIX}"

    def changes(self) -> Changes:
        """What is new, changed or gone since the last call. While the folder is away nothing is gone."""
        if not self._due():
            return Changes()
        before = self._unreachable
        now = self._look()
        if now is None:
            news = (self._unreachable,) if self._unreachable is not None and self._unreachable != before else ()
            return Changes(problems=news)
        fresh = [file for file, stamp in now.items() if self._known.get(file) != stamp]
        found = [sqlfiles.read(self._path, file, self._taken) for file in fresh]
        gone = [file.removesuffix(SUFFIX) for file in self._known if file not in now]
        self._known = now
        return Changes(
            {file.name: file.sql for file in found if file.sql is not None},
            tuple(name for name in gone if name not in self._taken),
            # Who writes a file may begin with an empty one.
            tuple(f.problem for f in found if f.problem is not None and not f.empty),
        )

    def _due(self) -> bool:
        try:
            changed = os.stat(self._path).st_mtime_ns
        except OSError:
            return True  # `_look` says why
        return changed != self._changed or time.monotonic() >= self._next

    def _look(self) -> dict[str, Stamp] | None:
        begun = time.monotonic()
        try:
            self._changed = os.stat(self._path).st_mtime_ns  # before: what comes meanwhile is seen the next time
            found = sqlfiles.look(self._path)
        except OSError as error:
            self._unreachable = sqlfiles.unreachable(self._path, error)
            return None
        self._unreachable = None
        took_s = time.monotonic() - begun
        self._next = begun + took_s + max(self._every_s, took_s / MOST_SHARE if self._every_s else 0.0)
        return found
