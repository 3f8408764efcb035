"""The queries folder while a job runs: writing a file submits its query, deleting it withdraws the query."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from towpath import sqlfiles
from towpath.errors import Problem
from towpath.sqlfiles import SUFFIX, Contents, Stamp


@dataclass(frozen=True)
class Changes:
    written: dict[str, str] = field(default_factory=dict)  # name -> SQL
    removed: tuple[str, ...] = ()  # names
    problems: tuple[Problem, ...] = ()  # with files, or with the folder itself; each is told once


class QueryFolder:
    """Looks instead of being told: a folder on shared storage tells nobody about its changes."""

    def __init__(self, path: Path, known: Contents | None = None) -> None:
        """`known`: what was there when the job was loaded."""
        known = known or sqlfiles.usable(path, frozenset())
        self._path = path
        self._known = known.stamps
        self._taken = known.taken
        self._unreachable: Problem | None = None

    def file(self, name: str) -> Path:
        return self._path / f"{name}{SUFFIX}"

    def changes(self) -> Changes:
        """What is new, changed or gone since the last call. While the folder is away nothing is gone."""
        told = self._unreachable
        now = self._look()
        if now is None:
            news = (self._unreachable,) if self._unreachable is not None and self._unreachable != told else ()
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

    def _look(self) -> dict[str, Stamp] | None:
        try:
            found = sqlfiles.look(self._path)
        except OSError as error:
            self._unreachable = sqlfiles.unreachable(self._path, error)
            return None
        self._unreachable = None
        return found
