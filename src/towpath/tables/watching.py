"""Reads the tables of a job again when their sources have changed, and keeps the last version that could be read."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from towpath.errors import JobError, Mistake
from towpath.store.layout import Store
from towpath.tables import versions
from towpath.tables.definition import TableDef
from towpath.tables.reading import BadTable, Signature, read, signature

log = logging.getLogger(__name__)

LOOK_S = 1.0  # a file that is the same in two looks, or was written so long ago, is taken for whole
SWEEP_S = 60.0


@dataclass
class _Watched:
    definition: TableDef
    folder: Path
    seen: Signature | None = None  # what the source was like when it was taken in, or found to be bad
    changing: Signature | None = None  # what it was like in the last look, if that was new
    trouble: str | None = None


@dataclass(frozen=True)
class TableNews:
    """What a look has found."""

    published: tuple[str, ...] = ()  # in words
    troubles: Mapping[str, str | None] = field(default_factory=dict)  # by table; None: none


class Tables:
    """The reference tables of a job that runs."""

    def __init__(
        self,
        store: Store,
        definitions: Mapping[str, TableDef],
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._clock = clock
        self._wall_clock = wall_clock
        self._watched = {name: _Watched(d, store.table(d.table)) for name, d in definitions.items()}
        self._look_at = self._sweep_at = float("-inf")

    def open(self) -> None:
        """Sees to it that every table has a version. Raises JobError for those that have none."""
        problems = []
        for name, watched in self._watched.items():
            try:
                self._take_in(watched, signature(watched.definition))
            except BadTable as error:
                if not versions.has_version(watched.folder):
                    problems.append(_mistake(name, error))
                watched.trouble = _kept(error, watched.folder)
        if problems:
            raise JobError("these tables cannot be read:", problems)

    def look(self) -> TableNews:
        """Takes in what has changed; does nothing until it is time to look again."""
        now = self._clock()
        if now < self._look_at:
            return TableNews()
        self._look_at = now + LOOK_S
        published = tuple(text for watched in self._watched.values() for text in self._look_at_one(watched))
        if now >= self._sweep_at:
            self._sweep_at = now + SWEEP_S
            self._sweep()
        return TableNews(published, {name: watched.trouble for name, watched in self._watched.items()})

    def _look_at_one(self, watched: _Watched) -> Iterator[str]:
        name, found = watched.definition.table.name, signature(watched.definition)
        if found == watched.seen and found is not None:
            watched.changing = None
        elif found != watched.changing and found is not None and not self._is_old(found):
            watched.changing = found  # somebody may be writing
        else:
            try:
                version = self._take_in(watched, found)
            except BadTable as error:
                trouble = _kept(error, watched.folder)
                if watched.trouble != trouble:
                    log.warning("table %s: %s", name, trouble)
                watched.trouble = trouble
            else:
                if version is not None:
                    yield f"{name} has version {version}, from {watched.definition.source.path}"

    def _is_old(self, found: Signature) -> bool:
        """A file that changes more often than anybody looks is to be read all the same."""
        return self._wall_clock() - found.changed_ns / 1e9 >= LOOK_S

    def _take_in(self, watched: _Watched, found: Signature | None) -> int | None:
        watched.changing, watched.seen = None, found
        rows = read(watched.definition)
        if signature(watched.definition) != found:
            watched.seen = None  # it was written meanwhile: look again
            return None
        version = versions.publish(watched.folder, rows)
        watched.trouble = None
        if version is not None:
            log.info("table %s: version %d has %d rows", watched.definition.table.name, version, rows.num_rows)
        return version

    def _sweep(self) -> None:
        for watched in self._watched.values():
            pins = self._store.pins(watched.folder)
            versions.sweep(watched.folder, {v for folder in pins if (v := versions.newest(folder)) is not None})


def mistakes(definitions: Mapping[str, TableDef]) -> Iterator[Mistake]:
    """Tables whose sources cannot be read now."""
    for name, definition in definitions.items():
        try:
            read(definition)
        except BadTable as error:
            yield _mistake(name, error)


def refuse_bad(definitions: Mapping[str, TableDef]) -> None:
    """Raises JobError if one of the tables cannot be read."""
    if found := list(mistakes(definitions)):
        raise JobError("these tables cannot be read:", found)


def troubles_of(news: TableNews) -> Iterable[tuple[str, str | None]]:
    """Each with what it is that fails."""
    return ((f"reading the table {name}", trouble) for name, trouble in news.troubles.items())


def _mistake(name: str, error: BadTable) -> Mistake:
    return Mistake(f"tables.{name}", str(error), error.hint)


def _kept(error: BadTable, folder: Path) -> str:
    if not versions.has_version(folder):
        return str(error)
    return f"{error}; version {versions.current(folder)} stays in force"
