from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from towpath.cli import main

STREAMS = """
streams:
  clock: {source: {type: rate, rate: 100}}
  bids: {source: {type: auction, table: bids, rate: 100, seed: 1}, delay: 2 seconds}
  auctions: {source: {type: auction, table: auctions, rate: 100, seed: 1}}
  "sensor{1..4}": {source: {type: traffic, sensor: "{n}", sensors: 4, rate: 30, seed: 7}}
"""
KINDS = {
    "filter": "SELECT value FROM clock WHERE value > 10",
    "join": "SELECT a.item, b.price FROM auctions [RANGE 5 SECONDS] a, bids [RANGE 5 SECONDS] b WHERE a.id = b.auction",
    "aggregate": "SELECT channel, count(*) AS n FROM bids [RANGE 10 SECONDS] GROUP BY channel",
    "aggregate over a join": "SELECT count(*) AS n FROM sensor1 [RANGE 5 SECONDS] a, sensor2 [RANGE 5 SECONDS] b "
    "WHERE a.car_id = b.car_id",
    "union": "SELECT mph FROM sensor1 UNION ALL SELECT mph FROM sensor2",
}


def check(folder: Path, job: str, *options: str) -> Result:
    file = folder / "job.yaml"
    file.write_text(job)
    return CliRunner().invoke(main, ["check", str(file), *options])


def with_queries(queries: dict[str, str]) -> str:
    return f"{STREAMS}\nqueries: {json.dumps(queries)}\n"


@pytest.mark.parametrize("kind", KINDS)
def test_the_kind_of_a_query_is_shown(tmp_path: Path, kind: str) -> None:
    result = check(tmp_path, with_queries({"q": KINDS[kind]}), "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["queries"]["q"]["kind"] == kind


def test_json_holds_streams_and_queries(tmp_path: Path) -> None:
    report = json.loads(check(tmp_path, with_queries({"late": KINDS["filter"]}), "--json").stdout)
    assert report["ok"] is True
    assert report["streams"]["clock"] == {
        "columns": {"value": "bigint", "timestamp": "timestamp"},
        "time": "timestamp",
        "delay_us": 0,
    }
    assert report["streams"]["bids"]["delay_us"] == 2_000_000
    assert report["queries"] == {"late": {"kind": "filter", "columns": {"value": "bigint"}}}


def test_the_summary_counts_queries_by_kind_and_joins_streams_that_are_alike(tmp_path: Path) -> None:
    result = check(tmp_path, with_queries({**{k.replace(" ", "_"): q for k, q in KINDS.items()}, "b": KINDS["filter"]}))
    assert result.exit_code == 0, result.output
    words = [line.replace("│", "").split() for line in result.stdout.splitlines()]
    assert ["filter", "2"] in words
    assert ["all", "6"] in words
    assert words[-1] == ["ok"]
    assert "sensor1 … sensor4 (4)" in result.stdout
    assert "value bigint, timestamp timestamp" in result.stdout


def test_all_mistakes_of_all_queries_are_reported_with_their_place(tmp_path: Path) -> None:
    folder = tmp_path / "queries"
    folder.mkdir()
    (folder / "good.sql").write_text(KINDS["filter"])
    (folder / "wrong.sql").write_text("SELECT value\nFROM clok")
    result = check(tmp_path, with_queries({"typo": "SELECT valu FROM clock"}) + "queries_folder: ./queries\n")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "queries.typo, line 1, column 8: " in result.stderr
    assert f"{folder / 'wrong.sql'}, line 2, column 6: " in result.stderr
    assert "good" not in result.stderr
    assert result.stderr.startswith("2 mistakes in queries:\n")


def test_a_file_below_the_current_folder_is_reported_by_its_short_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wrong.sql").write_text("SELECT valu FROM clock")
    result = check(tmp_path, f"{STREAMS}\nqueries_folder: .\n")
    assert result.stderr.startswith("1 mistake in queries:\nwrong.sql, line 1, column 8: ")


@pytest.mark.parametrize(
    ("job", "where"),
    [("streams: {clock: {source: {type: rat}}}", "streams.clock"), (with_queries({"q": "SELECT 1 +"}), "queries.q")],
    ids=["job file", "query"],
)
def test_problems_in_json(tmp_path: Path, job: str, where: str) -> None:
    result = check(tmp_path, job, "--json")
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert report["ok"] is False
    assert report["problems"][0]["where"].startswith(where)
    assert report["problems"][0].keys() == {"where", "message", "hint", "excerpt"}


def test_a_missing_job_file_is_reported(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["check", str(tmp_path / "nothing.yaml")])
    assert result.exit_code == 1
    assert "nothing.yaml" in result.stderr


TABLE = """
tables:
  side: {source: {type: file, path: ./side.csv, format: csv}, schema: {key: bigint, value: string}}
"""
LOOKS = "SELECT c.value AS n, s.value FROM clock AS c JOIN side AS s ON c.value % 10 = s.key"


def test_tables_are_read_and_shown(tmp_path: Path) -> None:
    (tmp_path / "side.csv").write_text("key,value\n1,one\n")
    job = with_queries({"q": LOOKS}) + TABLE
    report = json.loads(check(tmp_path, job, "--json").stdout)
    assert report["tables"] == {"side": {"columns": {"key": "bigint", "value": "string"}}}
    assert "side" not in report["streams"]
    assert report["queries"]["q"] == {"kind": "filter", "columns": {"n": "bigint", "value": "string"}}
    assert "key bigint, value string" in check(tmp_path, job).stdout


def test_a_table_that_is_not_there_is_a_mistake(tmp_path: Path) -> None:
    result = check(tmp_path, with_queries({"q": LOOKS}) + TABLE)
    assert result.exit_code == 1
    assert "tables.side: there is no file" in result.output
    assert "Traceback" not in result.output


def test_copies_of_a_query_over_a_table_are_refused(tmp_path: Path) -> None:
    (tmp_path / "side.csv").write_text("key,value\n1,one\n")
    queries = {"one": {"sql": LOOKS, "copies": 2}, "two": {"sql": KINDS["filter"], "copies": 2}}
    result = check(tmp_path, f"{STREAMS}\nqueries: {json.dumps(queries)}\n{TABLE}")
    assert result.exit_code == 1
    assert "queries.one.copies: expected 1, got 2: the query reads the table side" in result.output
    assert "queries.two" not in result.output
