"""One look at the results logs for many who read what is new in them: files are listed, opened and read once.

A carrier has one log for thousands of queries. Those of them that have sinks are mostly at the same place in it, so
the new files are read into memory once, with the rows that any of them asks for.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Iterable, Set
from pathlib import Path

import duckdb

from towpath.results import log
from towpath.results.log import Part, Position, Segment

_numbers = itertools.count()


class Look:
    def __init__(self, database: duckdb.DuckDBPyConnection, parts: Iterable[Part]) -> None:
        self._database = database
        self._fragments: dict[Path, set[int]] = {}  # that anybody asks for
        for part in parts:
            self._fragments.setdefault(part.root, set()).add(part.fragment)
        self._logs: dict[Path, list[Segment]] = {}
        self._tables: dict[tuple[Path, ...], tuple[str, frozenset[int]] | None] = {}
        self._guard = threading.Lock()
        self._names: list[str] = []
        weakref.finalize(self, _drop, database, self._names).atexit = False

    def segments(self, root: Path) -> list[Segment]:
        with self._guard:
            if root not in self._logs:
                self._logs[root] = log.segments(root)
            return self._logs[root]

    def behind(self, part: Part, position: Position) -> bool:
        """Whether the log has batches that a part has yet to read."""
        return position.of(part) < log.newest(self.segments(part.root))

    def table(self, part: Part, files: tuple[Path, ...]) -> str | None:
        """A table in memory with what anybody asks for of some files of a log; None if they cannot be read now."""
        found = self._read(part.root, files)
        return None if found is None else found[0]

    def has_nothing(self, part: Part, after: int, upto: int) -> bool:
        """Whether it is known that no row of a part is in some batches."""
        new = [s for s in self.segments(part.root) if s.last > after and s.first <= upto]
        if not all(s.raw for s in new):
            return False
        found = self._read(part.root, tuple(file for s in new for file in s.files))
        return found is not None and part.fragment not in found[1]

    def _read(self, root: Path, files: tuple[Path, ...]) -> tuple[str, Set[int]] | None:
        with self._guard:
            if files not in self._tables:
                self._tables[files] = self._load(self._fragments.get(root, set()), files)
            return self._tables[files]

    def _load(self, fragments: Set[int], files: tuple[Path, ...]) -> tuple[str, frozenset[int]] | None:
        if not files:
            return "", frozenset()
        name = f"look_{next(_numbers)}"
        wanted = ", ".join(str(int(fragment)) for fragment in sorted(fragments))
        rows = f"SELECT * FROM read_parquet(?, hive_partitioning = false) WHERE _fragment IN ({wanted or 'NULL'})"
        try:
            with self._database.cursor() as cursor:
                cursor.execute(f"CREATE TABLE {name} AS {rows}", [log.patterns(files)])
                self._names.append(name)
                found = cursor.execute(f"SELECT DISTINCT _fragment FROM {name}").fetchall()
        except duckdb.Error:
            return None  # merged a moment ago, or damaged: who reads them finds out
        return name, frozenset(fragment for (fragment,) in found)


def _drop(database: duckdb.DuckDBPyConnection, names: list[str]) -> None:
    with database.cursor() as cursor:
        for name in names:
            cursor.execute(f"DROP TABLE IF EXISTS {name}")
