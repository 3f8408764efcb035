"""The result log of a carrier: which files it is made of, and how far somebody has read it.

    batch=<n>/part-*.parquet + _SUCCESS      one micro-batch, counts once _SUCCESS is there
    compact/<first>-<last>.parquet           the batches first..last, merged and sorted

A carrier that another node takes over takes its log along into the folder of its next epoch, root/e<epoch>/results;
what lies in the folder of an earlier one was written by a node that did not know, and does not count.

Everything here rests on the writer: it commits batches in the order of their numbers and never goes back behind one.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from towpath.errors import StoreError

COMPACT = "compact"
RESULTS = "results"
SUCCESS = "_SUCCESS"
NOTHING = -1  # the batch number before the first
ATTEMPTS = 50  # a listing is spoilt only by a compaction that ends in the same millisecond, so this is never reached

_EPOCH_NAME = re.compile(r"e(\d+)")
_BATCH_NAME = re.compile(r"batch=(\d+)")
_COMPACT_NAME = re.compile(r"(\d{12,})-(\d{12,})\.parquet")


class Key(NamedTuple):
    """What makes a part the same part later on, when its end has been set."""

    root: Path
    fragment: int
    from_us: int | None


@dataclass(frozen=True)
class Part:
    """The rows that one fragment adds to a query: those of `fragment` in the log at `root`, between two fences."""

    root: Path
    fragment: int
    columns: tuple[tuple[str, str], ...]  # (output name, log column)
    from_us: int | None = None  # of the earliest event a row was made from
    until_us: int | None = None  # of the result time
    windowed: bool = False  # a window that ends exactly at the fence is still whole
    handed_over_us: int | None = None  # rows whose earliest event is not before it are another part's
    pending_fence_us: int | None = None  # a fence not yet decided: rows whose earliest event is not before it must wait
    select: int = 0  # parts of one SELECT that differ in their copy have the same rows, and each row counts once
    copy: int = 0
    keys: tuple[str, ...] = ()  # log columns that distinguish the rows of a window; of others, all columns do
    ceded_us: int | None = None  # rows whose earliest event is not before it are those of the query's next version
    scales: tuple[int | None, ...] = ()  # of output columns that are decimals: how many places their units have
    undecided: bool = False  # `until_us` or `ceded_us` may still rise: rows that it keeps out must wait

    @property
    def key(self) -> Key:
        return Key(Path(os.path.abspath(self.root)), self.fragment, self.from_us)


@dataclass(frozen=True)
class Position:
    """The last batch seen of every part.

    It is kept by part and not by log: a part becomes known when its move is final, and by then its first rows may be
    in batches that were already read for others.
    """

    seen: Mapping[Key, int] = field(default_factory=dict)

    def of(self, part: Part) -> int:
        return self.seen.get(part.key, NOTHING)

    def moved(self, to: Iterable[tuple[Part, int]]) -> Position:
        return Position({**self.seen, **{part.key: batch for part, batch in to}})

    def needed_from(self, root: Path, parts: Iterable[Part]) -> int | None:
        """The first batch in the log at `root` that these parts have yet to read; None if none of them is there."""
        return min((self.of(part) + 1 for part in parts if part.root == root), default=None)

    def to_json(self, base: Path) -> list[dict[str, Any]]:
        """Roots are written relative to `base`, so that a store can be moved."""
        return [
            {"root": os.path.relpath(key.root, base), "fragment": key.fragment, "from_us": key.from_us, "batch": batch}
            for key, batch in sorted(self.seen.items(), key=str)
        ]

    @classmethod
    def from_json(cls, entries: list[dict[str, Any]], base: Path) -> Position:
        def key(entry: dict[str, Any]) -> Key:
            return Key(Path(os.path.abspath(base / entry["root"])), entry["fragment"], entry["from_us"])

        return cls({key(entry): entry["batch"] for entry in entries})


class Span(NamedTuple):
    """The batches first..last of a compacted file."""

    first: int
    last: int

    def file(self, root: Path) -> Path:
        return root / COMPACT / f"{self.first:012d}-{self.last:012d}.parquet"

    def inside(self, other: Span) -> bool:
        return self != other and other.first <= self.first and self.last <= other.last


@dataclass(frozen=True)
class Segment:
    """A committed piece of the log: one raw batch, or one compacted file."""

    first: int
    last: int
    path: Path  # the batch's folder, or the compacted file
    files: tuple[Path, ...]
    raw: bool


@dataclass(frozen=True)
class Names:
    """What a look at the directories shows, counting or not."""

    batches: Mapping[int, Path]
    spans: frozenset[Span]

    @property
    def newest_compacted(self) -> int:
        return max((span.last for span in self.spans), default=NOTHING)

    def same_until_its_end(self, later: Names) -> bool:
        newest = max(self.batches, default=NOTHING)
        return later.spans == self.spans and {n for n in later.batches if n <= newest} == set(self.batches)

    def live_spans(self) -> list[Span]:
        return sorted(span for span in self.spans if not any(span.inside(other) for other in self.spans))


def place(root: Path) -> Path:
    """Where the log lies now."""
    epochs = [int(m[1]) for m in map(_EPOCH_NAME.fullmatch, _entries(root)) if m]
    return root / f"e{max(epochs)}" / RESULTS if epochs else root


def names(root: Path) -> Names:
    # Batches first: one that is missing because it was merged has its compacted file in place by now.
    batches = {int(m[1]): root / m[0] for m in map(_BATCH_NAME.fullmatch, _entries(root)) if m}
    spans = (Span(int(m[1]), int(m[2])) for m in map(_COMPACT_NAME.fullmatch, _entries(root / COMPACT)) if m)
    return Names(batches, frozenset(spans))


def segments(root: Path) -> list[Segment]:
    """Everything that counts, oldest first.

    A directory that changes while it is listed may show a later entry and hide an earlier one, so the answer is taken
    only when nothing but newer batches has come in the meantime, and nobody has taken the log over.
    """
    for _ in range(ATTEMPTS):
        here = place(root)
        before = names(here)
        found = _compacted(here, before) + _raw(before)
        if before.same_until_its_end(names(here)) and place(root) == here:
            return found
    raise StoreError(
        f"{root}: the log changed {ATTEMPTS} times while it was listed, expected a compaction now and then; "
        "see whether several processes compact the same store"
    )


def committed(root: Path) -> list[Path]:
    """The files that hold the results, oldest first."""
    return [file for segment in segments(root) for file in segment.files]


def newest(found: Iterable[Segment]) -> int:
    return max((segment.last for segment in found), default=NOTHING)


def patterns(files: Iterable[Path]) -> list[str]:
    """File names for DuckDB, which takes them for patterns."""
    return [glob.escape(str(file)) for file in files]


def _compacted(root: Path, seen: Names) -> list[Segment]:
    files = {span: span.file(root) for span in seen.live_spans()}
    return [Segment(span.first, span.last, file, (file,), raw=False) for span, file in files.items()]


def _raw(seen: Names) -> list[Segment]:
    found = []
    # Newest first: when a batch is committed, so are all before it, whatever happens between two looks.
    for number in sorted(seen.batches, reverse=True):
        inside = _entries(seen.batches[number]) if number > seen.newest_compacted else []
        if SUCCESS in inside:
            parts = (name for name in sorted(inside) if name.endswith(".parquet") and name[0] not in "._")
            files = tuple(seen.batches[number] / name for name in parts)
            found.append(Segment(number, number, seen.batches[number], files, raw=True))
    return found[::-1]


def _entries(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []
