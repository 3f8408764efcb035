"""Reading one query's results out of the logs of its fragments."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import Enum, auto
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa

from towpath.errors import StoreError
from towpath.results import log
from towpath.results.log import Part, Position, Segment
from towpath.results.look import Look
from towpath.schema import COMPUTED_DIGITS, MOST_DIGITS

TIME = "_time"
SCAN = "read_parquet(?, hive_partitioning = false)"  # names like batch=7 would else become columns

Logs = dict[Path, list[Segment]]


class Which(Enum):
    """Which rows of a part are read, while a fence or its end is not decided."""

    GIVEN = auto()  # those that are its own whatever is decided
    WAITING = auto()  # the others
    ALL = auto()  # both: what was given before a fence was set stays given


@dataclass(frozen=True)
class Chunk:
    """Rows that are new since the position before, and the position behind them."""

    table: pa.Table
    position: Position


def read(
    parts: Sequence[Part],
    *,
    after: Position | None = None,
    upto: Position | None = None,
    with_time: bool = False,
    look: Look | None = None,
    which: Which = Which.GIVEN,
) -> pa.Table:
    """The rows of all parts, ordered by result time, of the batches after one position and up to another.

    Of a SELECT with several copies each row is given once, when the first copy has it.

    `look` spares the reading of files that others have read in the same round.

    `with_time` adds the result time as a last column `_time`. Where nothing was ever written nothing says
    the types: the table then has its columns, without a type.
    """
    after = after or Position()
    names = [name for name, _ in parts[0].columns] + [TIME] * with_time if parts else []
    for _ in range(log.ATTEMPTS):
        logs = _logs(parts, look)
        scans = [replace(s, which=which) for p in parts for s in _scans(p, logs[p.root], after, upto)]
        if look is not None:
            scans = [scan.read_by(look) for scan in scans]
        if not scans:
            return pa.table([pa.nulls(0)] * len(names), names=names)
        try:
            scans += _given_before(parts, logs, scans, after)
            return _run(scans, with_time).rename_columns(names)
        except duckdb.Error as error:
            look = None  # it is of another moment
            # Compaction removes what it has merged; the rows are now in another file.
            if all(file.exists() for scan in scans for file in scan.files):
                raise _damaged(parts, error) from error
    raise StoreError(
        f"{_roots(parts)}: files vanished in {log.ATTEMPTS} attempts to read them; is the store being deleted?"
    )


@dataclass(frozen=True)
class Relation:
    """The rows of a query as SQL of DuckDB, to be part of other SQL: what that leaves out is not read."""

    sql: str
    files: tuple[Path, ...]  # that it reads; when one is missing, compaction has merged it into another


def relation(parts: Sequence[Part]) -> Relation:
    """The rows that `read` gives, in no order."""
    if not parts:
        return Relation("SELECT NULL AS nothing WHERE false", ())
    logs = _logs(parts)
    scans = [replace(s, written_out=True) for p in parts for s in _scans(p, logs[p.root], Position(), None)]
    names = _unlike([name for name, _ in parts[0].columns])
    if not scans:
        return Relation(f"SELECT {', '.join(f'NULL AS {_quoted(name)}' for name in names)} WHERE false", ())
    columns = ", ".join(f"c{n} AS {_quoted(name)}" for n, name in enumerate(names))
    rows, ordered = _rows(scans, len(names))
    return Relation(f"SELECT {columns} FROM ({rows})", tuple(file for scan in ordered for file in scan.files))


def _unlike(names: Sequence[str]) -> list[str]:
    """The same, with a number behind those that were there already: DuckDB takes a and A for one."""
    found: dict[str, str] = {}
    for name in names:
        new = next(n for k in itertools.count() if (n := f"{name}_{k}" if k else name).lower() not in found)
        found[new.lower()] = new
    return list(found.values())


def batches(
    parts: Sequence[Part],
    position: Position,
    unchanged: Callable[[], bool] = lambda: True,
    *,
    with_time: bool = False,
    look: Look | None = None,
) -> Iterator[Chunk]:
    """What was committed since `position`, a file of each log at a time so that a long history fits in memory.

    Rows behind a fence or an end that is not decided are not handed out, nor anything that was read while the parts
    changed: they might come a second time, from the fragment that takes over.
    """
    ends = {root: _ends(found) for root, found in _logs(parts, look).items()}
    while True:
        steps = [(part, e) for part in parts if (e := _next_end(ends[part.root], position.of(part))) is not None]
        steps = [(part, e) for part, e in steps if not _must_wait(part, position.of(part), e)]
        if not steps:
            return
        target = position.moved(steps)
        if look is not None and all(look.has_nothing(part, position.of(part), e) for part, e in steps):
            yield Chunk(pa.table({}), target)
            position = target
            continue
        table = read(parts, after=position, upto=target, with_time=with_time, look=look)
        if not unchanged():
            return
        yield Chunk(table, target)
        position = target


def follow(parts: Callable[[], Sequence[Part]], position: Position, wait: Callable[[], bool]) -> Iterator[Chunk]:
    """New rows as they come. The parts are asked for again every time, since a fragment may have moved.

    `wait` is called when there is nothing new, and ends it with False.
    """
    while True:
        now = parts()
        for chunk in batches(now, position, partial(_same, now, parts)):
            position = chunk.position
            if chunk.table.num_rows:
                yield chunk
        if not wait():
            return


def _same(before: Sequence[Part], parts: Callable[[], Sequence[Part]]) -> bool:
    return parts() == before


def end(parts: Sequence[Part]) -> Position:
    """The position behind everything there is."""
    logs = _logs(parts)
    return Position().moved((part, log.newest(logs[part.root])) for part in parts)


@dataclass(frozen=True)
class _Scan:
    """One part in some files of its log, raw or compacted."""

    part: Part
    files: tuple[Path, ...]
    between: tuple[int, int] | None = None  # batch numbers (after, upto]; raw files are chosen by their name instead
    old: bool = False  # its rows were given before, if only by this copy
    which: Which = Which.GIVEN
    since_us: int | None = None  # of the result time
    table: str | None = None  # that has the rows of the files already
    written_out: bool = False  # the names of the files stand in the SQL and are no parameter

    def read_by(self, look: Look) -> _Scan:
        return self if self.between else replace(self, table=look.table(self.part, self.files))

    def sql(self, with_time: bool) -> str:
        columns = [source for _, source in self.part.columns] + [TIME] * with_time
        # Names may be doubled or odd, so they are given when the rows are out.
        output = ", ".join(f"{self._value(n, source)} AS c{n}" for n, source in enumerate(columns))
        conditions = " AND ".join(self._conditions())
        return f"SELECT {output}, {TIME} AS t{self._identity()} FROM {self.table or self._scan()} WHERE {conditions}"

    def _scan(self) -> str:
        if not self.written_out:
            return SCAN
        files = ", ".join("'" + name.replace("'", "''") + "'" for name in log.patterns(self.files))
        return SCAN.replace("?", f"[{files}]")

    def _value(self, number: int, source: str) -> str:
        scale = self.part.scales[number] if number < len(self.part.scales) else None
        if scale is None:
            return _quoted(source)
        unit = f"CAST('{Decimal(1).scaleb(-scale):f}' AS DECIMAL({MOST_DIGITS},{scale}))"
        units = f"CAST({_quoted(source)} AS DECIMAL({COMPUTED_DIGITS},0))"
        return f"CAST({units} * {unit} AS DECIMAL({COMPUTED_DIGITS},{scale}))"

    def _identity(self) -> str:
        """What a row is the same by in another copy. Sums of fractions may differ there in the last digit."""
        keys = "".join(f", {_quoted(key)} AS k{n}" for n, key in enumerate(self.part.keys))
        return f", _born AS b, {self.part.copy:d} AS copy, {self.old} AS old{keys}"

    def _ends(self) -> Iterator[str]:
        part = self.part
        if part.ceded_us is not None:
            yield f"epoch_us(_born) < {part.ceded_us:d}"
        if part.until_us is not None:
            yield f"epoch_us({TIME}) {'<=' if part.windowed else '<'} {part.until_us:d}"

    def _conditions(self) -> Iterator[str]:
        part = self.part
        yield f"_fragment = {part.fragment:d}"
        if part.from_us is not None:
            yield f"epoch_us(_born) >= {part.from_us:d}"
        if part.handed_over_us is not None:
            yield f"epoch_us(_born) < {part.handed_over_us:d}"
        fixed, open_ = ([], [*self._ends()]) if part.undecided else ([*self._ends()], [])
        if part.pending_fence_us is not None:
            open_.append(f"epoch_us(_born) < {part.pending_fence_us:d}")
        yield from fixed
        if self.which is Which.GIVEN:
            yield from open_
        elif self.which is Which.WAITING:
            yield f"NOT ({' AND '.join(open_)})"
        if self.since_us is not None:
            yield f"epoch_us({TIME}) >= {self.since_us:d}"
        if self.between:
            yield f"_batch > {self.between[0]:d} AND _batch <= {self.between[1]:d}"


def _must_wait(part: Part, first: int, last: int) -> bool:
    """Whether some of the rows between two batches have to wait until a fence, or the end of a part, is decided."""
    open_end = part.undecided and (part.until_us, part.ceded_us) != (None, None)
    if part.pending_fence_us is None and not open_end:
        return False
    after, upto = Position({part.key: first}), Position({part.key: last})
    rows = read([replace(part, columns=())], after=after, upto=upto, with_time=True, which=Which.WAITING)
    return rows.num_rows > 0


def _scans(part: Part, found: list[Segment], after: Position, upto: Position | None) -> Iterator[_Scan]:
    first, last = after.of(part), log.newest(found) if upto is None else upto.of(part)
    wanted = [s for s in found if s.last > first and s.first <= last]
    raw = tuple(file for s in wanted if s.raw for file in s.files)
    compacted = tuple(file for s in wanted if not s.raw for file in s.files)
    if compacted:
        yield _Scan(part, compacted, (first, last))
    if raw:
        yield _Scan(part, raw)


def _given_before(parts: Sequence[Part], logs: Logs, new: Sequence[_Scan], after: Position) -> list[_Scan]:
    """Of SELECTs with several copies, the rows before the position that the new ones may be copies of."""
    found: list[_Scan] = []
    for select in _copied(parts):
        fresh = [scan for scan in new if scan.part.select == select]
        since_us = _oldest_us(fresh) if fresh else None
        if since_us is not None:
            before = [s for p in parts if p.select == select for s in _scans(p, logs[p.root], Position(), after)]
            found += [replace(scan, old=True, since_us=since_us, which=Which.ALL) for scan in before]
    return found


def _copied(parts: Sequence[Part]) -> set[int]:
    copies = {(part.select, part.copy) for part in parts}
    return {select for select, copy in copies if sum(s == select for s, _ in copies) > 1}


def _oldest_us(scans: Sequence[_Scan]) -> int | None:
    rows = " UNION ALL ".join(scan.sql(with_time=False) for scan in scans)
    with _database().cursor() as cursor:
        found = cursor.execute(f"SELECT min(epoch_us(t)) FROM ({rows})", _files(scans)).fetchone()
    return None if found is None else found[0]


def _run(scans: Sequence[_Scan], with_time: bool) -> pa.Table:
    rows, ordered = _rows(scans, len(scans[0].part.columns) + with_time, with_time=with_time)
    with _database().cursor() as cursor:
        return cursor.sql(f"SELECT * EXCLUDE t FROM ({rows}) ORDER BY t", params=_files(ordered)).to_arrow_table()


def _rows(scans: Sequence[_Scan], width: int, *, with_time: bool = False) -> tuple[str, list[_Scan]]:
    """SQL of the columns c0, c1 and so on, and of the result time t; with the scans in the order it has them in."""
    columns = ", ".join(f"c{n}" for n in range(width))
    copied = _copied([scan.part for scan in scans]) | {scan.part.select for scan in scans if scan.old}
    ordered: list[_Scan] = []
    selects: list[str] = []
    for select in dict.fromkeys(scan.part.select for scan in scans):
        mine = [scan for scan in scans if scan.part.select == select]
        rows = " UNION ALL ".join(scan.sql(with_time) for scan in mine)
        selects.append(_once(rows, columns, mine[0].part) if select in copied else f"SELECT {columns}, t FROM ({rows})")
        ordered += mine
    return " UNION ALL ".join(selects), ordered


def _once(rows: str, columns: str, part: Part) -> str:
    """Rows of several copies, each once. Those that are equal in one copy are distinguished by a number.

    A row of that number that any copy has given before is not given again.
    """
    keys = [f"k{n}" for n in range(len(part.keys))] if part.windowed else [f"c{n}" for n in range(len(part.columns))]
    same = ", ".join(["t", "b", *keys])
    numbered = f"SELECT *, row_number() OVER (PARTITION BY copy, {same} ORDER BY old DESC) AS n FROM ({rows})"
    first = f"row_number() OVER (PARTITION BY n, {same} ORDER BY old DESC, copy) = 1"
    return f"SELECT {columns}, t FROM ({numbered}) QUALIFY {first} AND NOT old"


def _files(scans: Sequence[_Scan]) -> list[list[str]]:
    return [log.patterns(scan.files) for scan in scans if scan.table is None]


@functools.cache
def _database() -> duckdb.DuckDBPyConnection:
    """Opened once: it takes longer than most reads."""
    database = duckdb.connect()
    database.execute("SET GLOBAL TimeZone = 'UTC'")
    database.execute("SET GLOBAL threads = 2")  # the machine is Spark's
    return database


def _logs(parts: Sequence[Part], look: Look | None = None) -> Logs:
    segments = log.segments if look is None else look.segments
    return {root: segments(root) for root in {part.root for part in parts}}


def look_at(parts: Iterable[Part]) -> Look:
    """A look for all who read these parts in one round."""
    return Look(_database(), parts)


def _ends(found: list[Segment]) -> list[int]:
    compacted = [segment.last for segment in found if not segment.raw]
    return [*compacted, log.newest(found)]


def _next_end(ends: list[int], seen: int) -> int | None:
    return next((last for last in ends if last > seen), None)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _damaged(parts: Sequence[Part], error: duckdb.Error) -> StoreError:
    return StoreError(
        f"{_roots(parts)}: the results cannot be read, expected Parquet files of one schema: {error}\n"
        "    -> if a file was changed or cut short, restore it; if the job's queries were changed, use a new store"
    )


def _roots(parts: Sequence[Part]) -> str:
    return ", ".join(sorted({str(part.root) for part in parts}))
