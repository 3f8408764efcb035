"""Reads the results of a job, running or not, without starting anything and without Spark."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from towpath.api.frame import Frame
from towpath.config.settings import meant
from towpath.control.journal.answers import Answers, share_read, state_of, whole
from towpath.control.journal.journal import Journal
from towpath.control.state.records import PartRecord, QueryRecord
from towpath.errors import UnknownNameError
from towpath.results import Position, follow, read
from towpath.store.layout import Store
from towpath.streams.rejected import Rejected, rejected

POLL_S = 0.2


@dataclass(frozen=True)
class StandingQuery:
    """What a store knows of a query: its columns, and the event times [from_us, until_us) it answers for."""

    name: str
    sql: str
    state: str  # starting | catching up 43% | standing | withdrawing | withdrawn | set aside
    columns: tuple[str, ...]
    from_us: int | None  # None: from the beginning
    until_us: int | None  # None: it goes on
    failed: str | None = None  # why it was set aside


class Reader(Answers):
    def __init__(self, store: str | Path) -> None:
        root = Store(Path(store).absolute())
        super().__init__(Journal(root.journal, read_only=True), root)

    def names(self) -> Sequence[str]:
        return self._journal.names()

    def queries(self) -> list[StandingQuery]:
        """Every query there ever was, by name; of those that were replaced, the newest."""
        past = self._past()
        return [
            StandingQuery(query.name, query.sql, _state(query, parts, past), *_answered(whole(parts)), query.failed)
            for query, parts in self._journal.queries()
        ]

    def _past(self) -> dict[int, float]:
        """For fragments that catch up, how much of the past they have."""
        fragments = self._journal.fragments_of_past()
        carriers = {c.id: c for c in self._journal.carriers()} if fragments else {}
        return {f: share_read(carriers[name], carriers.values()) for f, name in fragments.items()}

    def failed(self, name: str) -> str | None:
        """Why a query was set aside; None if it was not."""
        query = self._journal.query(name)
        return None if query is None else query.failed

    def read(self, name: str) -> pa.Table:
        """Everything so far. Where a query ends may be decided while it is read; then it is read again."""
        while True:
            parts = self.parts(name)
            table = read(parts)
            if self.parts(name) == parts:
                return table

    def frame(self, name: str) -> Frame:
        """The same for notebooks, pandas and Polars."""
        return Frame(name, self.read(name))

    def follow(self, name: str, stopped: threading.Event | None = None) -> Iterator[pa.Table]:
        """What there is, then what comes, until `stopped` is set."""
        stopped = stopped or threading.Event()
        for chunk in follow(lambda: self.parts(name), Position(), lambda: not stopped.wait(POLL_S)):
            yield chunk.table

    def rejected(self, stream: str | None = None) -> list[Rejected]:
        """Rows and files that were not taken in, of one stream or of all."""
        names = [str(version["name"]) for version in self._journal.streams]
        return rejected_of(rejected(self._store.rejected), stream, names, self._store.root)


def _state(query: QueryRecord, parts: Sequence[PartRecord], past: Mapping[int, float]) -> str:
    if query.failed is not None and not query.running:
        return "set aside"
    if not query.running:
        return "withdrawn" if all(part.done for part in parts) else "withdrawing"
    return state_of(parts, past)


def _answered(parts: Sequence[PartRecord]) -> tuple[tuple[str, ...], int | None, int | None]:
    """Columns and validity. Each SELECT of a union has its own; this is what all of them answer for."""
    starts = [part.from_us for part in parts if part.from_us is not None]
    ends = [part.until_us for part in parts if part.until_us is not None]
    return tuple(name for name, _ in parts[0].columns), max(starts, default=None), min(ends, default=None)


def rejected_of(listed: Iterable[Rejected], stream: str | None, names: Iterable[str], store: Path) -> list[Rejected]:
    """What was not taken in, of one stream or of all. Raises UnknownNameError for a stream that never was there."""
    found = list(listed)
    if stream is None:
        return found
    known = set(names).union(*(reject.streams for reject in found))
    if stream not in known:
        raise UnknownNameError(f"{store}: there is no stream named {stream!r}\n    -> {meant(stream, sorted(known))}")
    return [reject for reject in found if stream in reject.streams]
