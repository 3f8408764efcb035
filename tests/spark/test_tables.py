"""Reference tables that change while queries read them: every tuple has the version that its micro-batch had."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from towpath import job as jobs
from towpath.api.running import Towpath, start
from towpath.store.layout import Store
from towpath.tables import versions

pytestmark = pytest.mark.spark

BEGINNING_US = 1_767_225_600_000_000
KEYS = 8
JOB = """
trigger: 100 ms
nodes:
  local: &node
    type: embedded
    cores: 2
    memory: 2g
    spark: {spark.driver.extraJavaOptions: "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"}
  other: *node
streams:
  bid:
    source: {type: files, path: ./bid, format: parquet}
    schema: {id: bigint, auction: bigint, at: timestamp}
    time: at
tables:
  side:
    source: {type: file, path: ./side.csv, format: csv}
    schema: {key: bigint, version: int, value: string}
"""
QUERIES = {
    "found": "SELECT b.id, t.version, t.value FROM bid AS b JOIN side AS t ON b.auction % 10 = t.key",
    "even": "SELECT b.id, t.version FROM bid AS b JOIN side AS t ON b.auction % 10 = t.key WHERE b.auction % 2 = 0",
    "all": "SELECT b.id, t.value FROM bid AS b LEFT JOIN side AS t ON b.auction % 10 = t.key",
    "counts": "SELECT t.value, count(*) AS n, sum(b.id) AS s FROM bid [RANGE 10 SECONDS] AS b "
    "JOIN side AS t ON b.auction % 10 = t.key GROUP BY t.value",
    "pairs": "SELECT b.id, c.id AS other, t.value, u.version "
    "FROM bid [RANGE 1 SECOND] AS b, bid [RANGE 1 SECOND] AS c, "
    "side AS t, side AS u "
    "WHERE b.auction = c.auction AND b.auction % 10 = t.key AND c.auction % 10 = u.key AND b.id < c.id",
}
# The same over `bid` and `side` with the version that each tuple had, in DuckDB's own words.
PLAIN = {
    "found": "SELECT id, version, value FROM bid JOIN side USING (key, version)",
    "even": "SELECT id, version FROM bid JOIN side USING (key, version) WHERE auction % 2 = 0",
    "all": "SELECT id, value FROM bid LEFT JOIN side USING (key, version)",
    "counts": "SELECT value, count(*), sum(id) FROM bid JOIN side USING (key, version) "
    'GROUP BY value, epoch_us("at") // 10000000',
    "pairs": "SELECT b.id, c.id, t.value, u.version FROM bid b JOIN bid c ON b.auction = c.auction AND b.id < c.id "
    'AND abs(epoch_us(b."at") - epoch_us(c."at")) <= 1000000 JOIN side t ON t.key = b.key AND t.version = b.version '
    "JOIN side u ON u.key = c.key AND u.version = c.version",
}
RUNNER = "import sys, towpath; towpath.start(sys.argv[1]).run()"


class World:
    """A stream of bids, one file for each quarter of a second of event time, and a table that changes."""

    def __init__(self, folder: Path, carriers: str, queries: dict[str, str]) -> None:
        self.folder = folder
        self.files = self.version = 0
        (folder / "bid").mkdir()
        texts = "".join(f"  {name}: {sql}\n" for name, sql in queries.items())
        self.job = folder / "job.yaml"
        self.job.write_text(f"{JOB}carriers: {carriers}\nqueries:\n{texts}")
        self.change()

    @property
    def table(self) -> Path:
        return Store(self.job.with_suffix(".store")).table(jobs.load(self.job).tables["side"].table)

    def change(self) -> None:
        """Every version has other values, and for some keys no row or two."""
        self.version += 1
        lines = [f"{k},{self.version},v{self.version}-{k}" for k in range(KEYS) if k != self.version % KEYS]
        lines.append(f"{(self.version + 1) % KEYS},{self.version},again-{self.version}")
        scratch = self.folder / "side.tmp"
        scratch.write_text("key,version,value\n" + "\n".join(lines) + "\n")
        scratch.rename(self.folder / "side.csv")

    def bids(self, files: int = 1) -> None:
        for _ in range(files):
            first = self.files * 10
            ids = list(range(first, first + 10))
            rows = {
                "id": pa.array(ids, pa.int64()),
                "auction": pa.array([n * 7 % 50 for n in ids], pa.int64()),
                "at": pa.array([BEGINNING_US + n * 25_000 for n in ids], pa.timestamp("us", tz="UTC")),
            }
            scratch = self.folder / "bid" / ".scratch"
            pq.write_table(pa.table(rows), scratch)
            scratch.rename(self.folder / "bid" / f"{self.files:05}.parquet")
            self.files += 1
            time.sleep(0.002)  # files are told apart by when they were written

    def database(self, version_of: dict[int, int]) -> duckdb.DuckDBPyConnection:
        """`version_of` each file of bids; what the job has not seen of the table has no version."""
        con = duckdb.connect()
        rows = {v: versions.load(self.table, v) for v in sorted({*version_of.values()})}
        con.register("side", pa.concat_tables(rows.values()))
        written = [rows[v]["version"][0].as_py() for v in version_of.values()]
        con.register("had", pa.table({"file": list(version_of), "version": written}))
        con.execute(
            f'CREATE TABLE bid AS SELECT id, auction, auction % 10 AS key, "at", had.version '
            f"FROM read_parquet('{self.folder}/bid/*.parquet') JOIN had ON file = id // 10"
        )
        return con

    def read_so_far(self) -> int:
        """How many versions each carrier has read, at the least."""
        folders = (self.job.with_suffix(".store") / "carriers").glob("*/e*/tables/*")
        return min((len({note.version for note in versions.changes(f).values()}) for f in folders), default=0)

    def versions_of(self, carrier: Path) -> dict[int, int]:
        """Which version each file of bids had in a carrier, by what it has on record."""
        written = {p.stat().st_mtime_ns // 1_000_000: int(p.stem) for p in self.folder.glob("bid/*.parquet")}
        (epoch,) = carrier.glob("e*")
        lines = [line for log in epoch.glob("checkpoint/sources/0/*") for line in log.read_text().splitlines()[1:]]
        position = {written[entry["timestamp"]]: entry["batchId"] for entry in map(json.loads, lines)}
        notes = versions.changes(epoch / "tables" / self.table.name)
        begins = [(_position(note.begins), note.version) for note in notes.values()]
        return {file: next(v for at, v in reversed(begins) if at < where) for file, where in position.items()}


def _position(offsets: str) -> int:
    """How far the files had been read, by what Spark writes down of a micro-batch."""
    found: int = json.loads(offsets.splitlines()[2])["logOffset"] if offsets else -1
    return found


def carrier_of(running: Towpath, query: str) -> Path:
    state = running.engine.controller.state
    (part,) = state.parts_of(running.engine.controller.queries.running[query].id)
    return Store(running.job.store).carrier(state.fragments[part.fragment].carrier)


def rows(table: pa.Table) -> list[tuple[object, ...]]:
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


def plain(con: duckdb.DuckDBPyConnection, query: str) -> list[tuple[object, ...]]:
    return sorted(con.execute(PLAIN[query]).fetchall(), key=repr)


def wait_for_version(running: Towpath, world: World, version: int) -> None:
    end = time.monotonic() + 60
    while versions.current(world.table) < version:
        running.run(seconds=0.2)
        assert time.monotonic() < end, "the table was not read again"


@pytest.mark.parametrize("carriers", [pytest.param("compiled", marks=pytest.mark.live), "universal"])
def test_a_table_changes_while_queries_read_it(tmp_path: Path, carriers: str) -> None:
    """Everything is read before the table changes, so the versions are known."""
    world, version_of = World(tmp_path, carriers, QUERIES), {}
    with start(world.job) as running:
        for version in (1, 2, 3):
            if version > 1:
                world.change()
                wait_for_version(running, world, version)
            for name in QUERIES if version == 2 else ():
                running.move(name, "other")  # with all that came before it
            version_of |= dict.fromkeys(range(world.files, world.files + 8), version)
            world.bids(8)
            running.catch_up()
        running.drain()
        con = world.database(version_of)
        for name in QUERIES:
            assert rows(running.results(name)) == plain(con, name), name
            assert {2, 3} & set(running.results("found")["version"].to_pylist())


VIEW = (
    "SELECT v.auction, v.n, t.value "
    "FROM (SELECT auction, count(*) AS n FROM bid [RANGE 1 SECOND] GROUP BY auction) AS v "
    "JOIN side AS t ON v.auction % 10 = t.key"
)


def test_what_a_view_puts_out_looks_rows_up_and_a_query_that_comes_later_does(tmp_path: Path) -> None:
    world = World(tmp_path, "auto", {"over": VIEW})
    with start(world.job) as running:
        world.bids(10)
        running.catch_up()
        running.submit("later", QUERIES["found"], start="beginning")
        world.bids(10)
        running.drain()
        con = world.database(dict.fromkeys(range(20), 1))
        wanted = con.execute(
            "SELECT auction, n, value FROM (SELECT auction, key, version, count(*) AS n FROM bid "
            'GROUP BY auction, key, version, epoch_us("at") // 1000000) JOIN side USING (key, version)'
        ).fetchall()
        assert rows(running.results("over")) == sorted(wanted, key=repr)
        assert rows(running.results("later")) == plain(con, "found")
        assert wanted


def run_and_kill(world: World, after: int) -> None:
    """Once every carrier has read so many versions, at whatever it is doing then."""
    runner = subprocess.Popen([sys.executable, "-c", RUNNER, str(world.job)], start_new_session=True)
    change = 0.0
    try:
        while world.read_so_far() < after:
            world.bids()
            if time.monotonic() >= change:
                world.change()
                change = time.monotonic() + 3
            time.sleep(0.3)
            assert runner.poll() is None, "the runner stopped by itself"
    finally:
        os.killpg(runner.pid, signal.SIGKILL)  # the JVM and its Python workers, too
        runner.wait()


@pytest.mark.live
@pytest.mark.timeout(900)
@pytest.mark.parametrize("carriers", ["compiled", "universal"])
def test_killed_while_the_table_changes(tmp_path: Path, carriers: str) -> None:
    """What each carrier has on record says which version each tuple had, and that is what it has answered by."""
    queries = {name: sql for name, sql in QUERIES.items() if name != "pairs"}
    world = World(tmp_path, carriers, queries)
    run_and_kill(world, after=3)
    run_and_kill(world, after=5)
    with start(world.job) as running:
        world.bids(4)
        running.drain()
        seen = set()
        for name in queries:
            version_of = world.versions_of(carrier_of(running, name))
            assert len(version_of) == world.files
            assert rows(running.results(name)) == plain(world.database(version_of), name), name
            seen |= {*version_of.values()}
        assert len(seen) >= 5, "the table did not change while it was read, so this shows nothing"
        assert carrier_of(running, "found") == carrier_of(running, "even")
