"""Links: derived streams, read out of the results logs of the fragments that make them.

A link is what its producers have written anyway: the segments of their results logs, committed exactly once. How far
a producer has come, its *low-water mark*, is in its checkpoint: the watermark that Spark committed with a micro-batch.
Nothing older than that will come from it. A link's file says who its producers are, one after the other: a fragment
that moves hands over at a fence.

The links of one schema class are read together as one replayable feed. It releases rows up to the least of their
marks, so a link that lags never has late rows. A position is an event time; between two positions lies a fixed set of
rows, since both are behind the marks: it does not matter in which file a row is by now, or which node wrote it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from towpath.errors import StoreError
from towpath.results import log
from towpath.schema import BEFORE_1970_US, BEFORE_ALL_US, MS
from towpath.store import durable
from towpath.store.linefile import LineFile
from towpath.streams.portions import Pending, until_us

END_US = 2**62
# A link that is no further behind than this when it comes holds the others back until it has caught up; one that has
# more to catch up with lets them go on meanwhile.
NEAR_US = 10_000_000
CHECKPOINT = "checkpoint"
TIME, BORN, FRAGMENT = "_time", "_born", "_fragment"
TYPE = pa.timestamp("us", "UTC")


@dataclass(frozen=True)
class Turn:
    """One producer of a link: a fragment in the log of its carrier, and the event times that are its own."""

    root: str
    fragment: int
    columns: tuple[str, ...]  # of the log, in the order of the stream's
    windowed: bool  # its results wait for the watermark, others have left before it is committed
    span_us: int  # how long after its earliest tuple a result may come
    from_us: int | None = None
    handed_over_us: int | None = None
    pending_fence_us: int | None = None
    done: bool = False  # all that it will ever have is in the log
    node: str = ""  # that runs it


@dataclass(frozen=True)
class Link:
    """What a link's file says. `id` distinguishes a link from an earlier one of the same name."""

    name: str
    id: int
    settled: bool  # a micro-batch has confirmed the first producer
    turns: tuple[Turn, ...]

    def write(self, folder: Path) -> None:
        """Every start writes it again, before anything else is done."""
        durable.write_json(folder / f"{self.name}.json", asdict(self), lasting=False)


def read_link(path: Path) -> Link | None:
    try:
        raw = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    turns = tuple(Turn(**{**turn, "columns": tuple(turn["columns"])}) for turn in raw.pop("turns"))
    return Link(**raw, turns=turns)


class LinkSpan(NamedTuple):
    """What a file of a log holds: result times, and how many rows."""

    oldest_us: int
    newest_us: int
    rows: int


class Joined(NamedTuple):
    """A link of the feed, and the event time behind which its rows are part of it."""

    name: str
    id: int
    after_us: int


class LinkIndex:
    """The links of a feed, in the order in which they came. The feed writes it, others may read."""

    def __init__(self, path: Path) -> None:
        self._file = LineFile(path)
        self._joined: list[Joined] = []

    def joined(self) -> list[Joined]:
        self._joined += [Joined(*values) for values in self._file.news()]
        return self._joined

    def join(self, links: Sequence[Joined]) -> None:
        """Durably, before a position counts on it."""
        self._file.append(links)
        self._joined += links


@dataclass(frozen=True)
class LinkPosition:
    """An event time; `took` says how long what was released up to there was on its way, for who measures that."""

    links: int = 0  # of the index
    released_us: int = BEFORE_ALL_US
    # By producing node, in microseconds: from the look at its links until the reader had them, and from the newest
    # commit on.
    took: dict[str, tuple[int, int]] = field(default_factory=dict, compare=False)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(value: dict[str, Any]) -> LinkPosition:
        return LinkPosition(**value)


@dataclass(frozen=True)
class LinkSlice:
    """A piece of work: rows of some links in one log, with times in (after, until]; or a tick at `until`."""

    root: str
    files: tuple[str, ...]
    turns: tuple[tuple[str, Turn, int], ...]  # stream, producer, the time behind which its rows count
    until_us: int
    rows: int = 0

    @property
    def after_us(self) -> int:
        return min(after for _, _, after in self.turns)


class LinkFeed:
    """Reads the links of one class: those that have a file in `folder`. `index` remembers when each came."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self._folder = Path(spec["folder"])
        self._index = LinkIndex(Path(spec["index"]))
        self._schema = pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(spec["schema"])))
        self._time: str = spec["time"]
        self._most_rows: int = spec["most_rows"]
        self._away: dict[str, float] = spec.get("away", {})  # by node, seconds that its links are to take
        self._spans: dict[str, dict[Path, LinkSpan]] = {}  # of the files of each log

    # --- positions ---------------------------------------------------------------------------------------------------

    def advance(self, start: LinkPosition) -> LinkPosition:
        """The newest position that may be released now."""
        joined = self._index.joined()
        before = self._links()
        looks = {name: _Look(link) for name, link in before.items()}
        marks = {name: look.mark for name, look in looks.items()}
        members = {j.name for j in joined if j.name in before and before[j.name].id == j.id}
        fresh = [link for name, link in before.items() if name not in members]
        if start.released_us == BEFORE_ALL_US:
            # All that are there from the beginning answer for everything, so they begin together.
            if any(not link.settled or marks[link.name] is None for link in before.values()):
                return start
            joining = fresh
        else:
            joining = [link for link in fresh if link.settled and _near(marks[link.name], start.released_us)]
        waiting = [marks[name] for name in members | {link.name for link in joining}]
        reached = [mark for mark in waiting if mark is not None]
        frontier = min(reached) if reached and len(reached) == len(waiting) else start.released_us
        if self._links() != before:
            # A fence was set in between: what was read may be somebody else's to give. The next look is soon.
            return start
        frontier = self._portion([before[name] for name in members] + joining, start.released_us, frontier)
        self._index.join([Joined(link.name, link.id, start.released_us) for link in joining])
        took = self._bring(looks.values()) if frontier > start.released_us else start.took
        return LinkPosition(len(self._index.joined()), max(start.released_us, frontier), took)

    def _bring(self, looks: Iterable[_Look]) -> dict[str, tuple[int, int]]:
        """Waits as long as nodes are to be away, and says how long what was found took."""
        quickest: dict[str, _Look] = {}
        for look in looks:
            if look.node and (look.node not in quickest or look.seconds < quickest[look.node].seconds):
                quickest[look.node] = look
        begun = time.time()
        found: dict[str, tuple[int, int]] = {}
        for node, look in sorted(quickest.items(), key=lambda entry: self._away.get(entry[0], 0.0)):
            time.sleep(max(0.0, begun + self._away.get(node, 0.0) - time.time()))
            now = time.time()
            committed = look.committed() or now
            found[node] = int((look.seconds + now - begun) * 1e6), max(0, int((now - committed) * 1e6))
        return found

    def _portion(self, links: Sequence[Link], released_us: int, frontier_us: int) -> int:
        """Not all at once, should there be much."""
        if frontier_us - released_us <= NEAR_US:
            return frontier_us
        spans = [s for root in {t.root for link in links for t in link.turns} for s in self._files(root).values()]
        waiting = [Pending(s.oldest_us, s.newest_us, s.rows, released_us) for s in spans if s.newest_us > released_us]
        return until_us(waiting, released_us, frontier_us, self._most_rows)

    def _links(self) -> dict[str, Link]:
        try:
            names = sorted(name for name in os.listdir(self._folder) if name.endswith(".json"))
        except FileNotFoundError:
            return {}
        found = (read_link(self._folder / name) for name in names)
        return {link.name: link for link in found if link is not None}

    # --- slices ------------------------------------------------------------------------------------------------------

    def slices(self, start: LinkPosition, end: LinkPosition) -> list[LinkSlice]:
        links = self._links()
        by_root: dict[str, list[tuple[str, Turn, int]]] = {}
        for member in self._index.joined()[: end.links]:
            link = links.get(member.name)
            if link is not None and link.id == member.id:
                after = max(start.released_us, member.after_us)
                for turn in link.turns:
                    by_root.setdefault(turn.root, []).append((link.name, turn, after))
        found, until = [], end.released_us
        for root, turns in by_root.items():
            piece = LinkSlice(root, (), tuple(turns), until)
            files = [f for f, s in self._files(root).items() if s.newest_us > piece.after_us and s.oldest_us <= until]
            if files:
                rows = sum(self._spans[root][file].rows for file in files)
                found.append(replace(piece, files=tuple(map(str, files)), rows=rows))
        return found

    def _files(self, root: str) -> dict[Path, LinkSpan]:
        known = self._spans.get(root, {})
        self._spans[root] = {file: known.get(file) or span(file) for file in log.committed(Path(root))}
        return self._spans[root]

    def read(self, piece: LinkSlice) -> Iterator[pa.RecordBatch]:
        """The rows of a slice, with the stream's name in front."""
        for table in self._tables(piece):
            yield from self._named(table, piece)

    def tick(self, until_us: int) -> pa.RecordBatch:
        """A row without a stream: event time has come so far, whether or not there are tuples."""
        time = pa.array([until_us], pa.int64()).cast(TYPE)
        fields = [pa.field("_stream", pa.string()), *self._schema]
        values = [time if f.name == self._time else pa.nulls(1, f.type) for f in fields]
        return pa.RecordBatch.from_arrays(values, schema=pa.schema(fields))

    def _tables(self, piece: LinkSlice) -> list[pa.Table]:
        files: Sequence[Path] = [Path(file) for file in piece.files]
        for _ in range(log.ATTEMPTS):
            try:
                return [_rows(file, piece) for file in files]
            except FileNotFoundError:
                # Compaction has merged files, or another node has taken the log over: the rows are in other files now.
                files = log.committed(Path(piece.root))
        raise StoreError(
            f"{piece.root}: files vanished in {log.ATTEMPTS} attempts to read them; is the store being deleted?"
        )

    def _named(self, table: pa.Table, piece: LinkSlice) -> Iterator[pa.RecordBatch]:
        if not table.num_rows:
            return
        born, time = _us(table[BORN]), _us(table[TIME])
        for name, turn, after in piece.turns:
            mine = pc.and_(pc.equal(table[FRAGMENT], turn.fragment), pc.greater(time, after))
            if turn.from_us is not None:
                mine = pc.and_(mine, pc.greater_equal(born, turn.from_us))
            if turn.handed_over_us is not None:
                mine = pc.and_(mine, pc.less(born, turn.handed_over_us))
            own = table.filter(mine)
            if own.num_rows:
                values = [own[column] for column in (*turn.columns, TIME)]
                named = pa.table(values, names=[*self._names, self._time]).select(self._schema.names)
                stream = pa.array([name] * own.num_rows, pa.string())
                yield from (
                    named.cast(self._schema)
                    .add_column(0, pa.field("_stream", pa.string()), stream)
                    .combine_chunks()
                    .to_batches()
                )

    @property
    def _names(self) -> list[str]:
        """The stream's columns besides its time, in the order of a turn's."""
        return sorted((n for n in self._schema.names if n != self._time), key=lambda name: int(name[1:]))


class _Look:
    """How far a link has come, and how long it took to find out."""

    def __init__(self, link: Link) -> None:
        self.node, self._root = link.turns[-1].node, Path(link.turns[-1].root)
        begun = time.perf_counter()
        self.mark = mark(link)
        self.seconds = time.perf_counter() - begun

    def committed(self) -> float | None:
        """When the newest micro-batch was committed, by the clock of whoever keeps the files."""
        folder = log.place(self._root).parent / CHECKPOINT / "commits"
        try:
            with os.scandir(folder) as entries:
                return max((e.stat().st_mtime for e in entries if e.name.isdigit()), default=None)
        except FileNotFoundError:
            return None


def mark(link: Link) -> int | None:
    """Everything of a link up to this event time is in the logs; None if nothing is known yet."""
    least = END_US
    for turn in link.turns:
        reached = END_US if turn.done else low_water(Path(turn.root), windowed=turn.windowed)
        if reached is None:
            return None
        if turn.handed_over_us is not None and reached >= turn.handed_over_us + turn.span_us:
            reached = END_US
        if turn.pending_fence_us is not None:
            reached = min(reached, turn.pending_fence_us - 1)
        least = min(least, reached)
    return least


def low_water(root: Path, *, windowed: bool) -> int | None:
    """The event time up to which a carrier has put everything into its log; None if it has not said yet.

    A micro-batch is committed together with the watermark of the next one. Rows that do not wait for a watermark are
    all out by then, up to it; windows that end before it only with the next micro-batch.
    """
    folder = log.place(root).parent / CHECKPOINT / "commits"
    try:
        committed = sorted((int(name) for name in os.listdir(folder) if name.isdigit()), reverse=True)
        for number in committed[1:2] if windowed else committed[:1]:
            watermark_ms = json.loads((folder / str(number)).read_text().partition("\n")[2])["nextBatchWatermarkMs"]
            # Not the time itself: a tuple exactly at the watermark is not late yet.
            return int(watermark_ms) * MS - BEFORE_1970_US - 1 if watermark_ms else None
    except FileNotFoundError:
        pass  # it has not begun, or is being taken over
    return None


def _near(mark: int | None, released_us: int) -> bool:
    return mark is not None and mark >= released_us - NEAR_US


def span(file: Path) -> LinkSpan:
    try:
        meta = pq.read_metadata(file)
    except FileNotFoundError:  # merged a moment ago: who reads it looks for it again
        return LinkSpan(BEFORE_ALL_US, END_US, 0)
    if not meta.num_rows:
        return LinkSpan(END_US, BEFORE_ALL_US, 0)
    column = meta.schema.names.index(TIME)
    stats = [meta.row_group(n).column(column).statistics for n in range(meta.num_row_groups)]
    if any(s is None or not s.has_min_max for s in stats):
        return LinkSpan(BEFORE_ALL_US, END_US, meta.num_rows)
    return LinkSpan(_us_of(min(s.min for s in stats)), _us_of(max(s.max for s in stats)), meta.num_rows)


def _us_of(value: Any) -> int:
    return int(pa.scalar(value, TYPE).cast(pa.int64()).as_py())


def _us(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(pa.timestamp("us", "UTC")).cast(pa.int64())


def _rows(file: Path, piece: LinkSlice) -> pa.Table:
    columns = [FRAGMENT, TIME, BORN, *dict.fromkeys(c for _, turn, _ in piece.turns for c in turn.columns)]
    until = pa.scalar(piece.until_us, pa.int64()).cast(TYPE)
    conditions: list[tuple[str, str, Any]] = [
        (FRAGMENT, "in", sorted({turn.fragment for _, turn, _ in piece.turns})),
        (TIME, "<=", until),
    ]
    if piece.after_us > BEFORE_ALL_US:
        conditions.append((TIME, ">", pa.scalar(piece.after_us, pa.int64()).cast(TYPE)))
    return pq.read_table(file, columns=list(dict.fromkeys(columns)), filters=conditions, partitioning=None)
