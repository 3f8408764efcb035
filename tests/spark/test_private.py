"""What a job writes, Spark and its workers included, whatever the umask it is started under."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from tests.spark.folders import arrive, write_job

pytestmark = pytest.mark.spark

QUERIES = {
    "big": "SELECT k, x FROM s WHERE x > 1",
    "shout": "SELECT k + 1 AS k FROM s WHERE x < 100",
    "counted": "SELECT k, count(*) AS n FROM s [RANGE 2 SECONDS] GROUP BY k",
    "pairs": "SELECT s.k, r.x FROM s [RANGE 2 SECONDS] AS s, r [RANGE 2 SECONDS] AS r WHERE s.k = r.k",
}


@pytest.mark.parametrize("carriers", ["compiled", "universal"])
def test_nothing_of_a_store_is_for_others_and_sinks_are(tmp_path: Path, carriers: str) -> None:
    job = write_job(tmp_path, ["s", "r"], QUERIES)
    sink = "queries: {out: {sql: 'SELECT k FROM s', sink: {type: parquet, path: ./out}}}\n"
    job.write_text(f"carriers: {carriers}\n{sink}{job.read_text()}")
    for stream in ("s", "r"):
        arrive(tmp_path, stream, [(k, float(k), k) for k in range(1, 9)])
    (tmp_path / "s" / "broken.parquet").write_text("not Parquet")  # something to be written down as rejected
    command = [sys.executable, "-c", "import towpath.cli; towpath.cli.main()", "run", str(job), "--until-drained"]
    done = subprocess.run(command, umask=0, capture_output=True, text=True, env=os.environ | {"TMPDIR": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    store = tmp_path / "job.store"
    written = [store, *store.rglob("*")]
    # From each who writes: SQLite, logging, stderr of Spark, log4j, checkpoints, results, assignments, dead letters.
    names = {path.name for path in written}
    assert names >= {"journal.sqlite", "towpath.log", "spark.err", "spark.log", "checkpoint", "rejected"}
    assert any(path.suffix == ".parquet" and "results" in path.parts for path in written)
    assert [str(path) for path in written if stat.S_IMODE(path.lstat().st_mode) & 0o077 and not path.is_symlink()] == []
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "out").glob("*.parquet")} == {0o666}
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o777
