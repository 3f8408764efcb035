"""Streams that share a folder and differ in the value of a column."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.spark.folders import HEADER, arrive

from towpath.api.running import start

pytestmark = pytest.mark.spark

STREAM = """
  NAME:
    source: {type: files, path: ./FOLDER, format: parquet, where: {k: VALUE}}
    schema: {k: bigint, x: double, at: timestamp}
    time: at
    delay: 1 second
    idle_after: 0
"""
JOIN = "SELECT a.x AS ax, b.x AS bx FROM s1 [RANGE 2 SECONDS] AS a, s2 [RANGE 2 SECONDS] AS b WHERE a.x = b.x"
ONE = "SELECT k, x FROM s1 WHERE x > 0"


def write_job(folder: Path, folders: dict[int, str], queries: dict[str, str]) -> Path:
    for name in {"queries", *folders.values()}:
        (folder / name).mkdir()
    for name, sql in queries.items():
        (folder / "queries" / f"{name}.sql").write_text(sql)
    texts = [
        STREAM.replace("NAME", f"s{k}").replace("FOLDER", path).replace("VALUE", str(k)) for k, path in folders.items()
    ]
    job = folder / "job.yaml"
    job.write_text(HEADER + "".join(texts))
    return job


@pytest.mark.parametrize(
    ("folders", "queries"),
    [
        pytest.param({1: "all", 2: "all"}, {"one": ONE, "join": JOIN}, id="many streams of one folder"),
        pytest.param({1: "all"}, {"one": ONE}, id="one stream of a folder"),
        pytest.param({1: "all", 2: "other"}, {"one": ONE}, id="streams of two folders"),
    ],
)
def test_a_row_belongs_to_the_stream_with_its_value(
    tmp_path: Path, folders: dict[int, str], queries: dict[str, str]
) -> None:
    with start(write_job(tmp_path, folders, queries)) as running:
        arrive(tmp_path, "all", [(1, 5.0, 1), (2, 5.0, 1.5), (3, 5.0, 1.5), (1, 7.0, 2)])
        running.drain()
        assert running.results("one").to_pylist() == [{"k": 1, "x": 5.0}, {"k": 1, "x": 7.0}]
        if "join" in queries:
            assert running.results("join").to_pylist() == [{"ax": 5.0, "bx": 5.0}]
