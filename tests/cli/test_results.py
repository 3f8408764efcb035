from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from stores import make_store
from towpath.cli import main
from towpath.control.journal.journal import Journal
from towpath.control.state.records import QueryRecord
from towpath.store.layout import Store


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return make_store(tmp_path / "job.store")


def results(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["results", *map(str, arguments)])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--format", "csv"], '"value","text"\n5,"row 5"\n6,"row 6"\n'),
        (["--format", "json"], '{"value": 5, "text": "row 5"}\n{"value": 6, "text": "row 6"}\n'),
    ],
)
def test_the_newest_rows_in_each_format(store: Path, options: list[str], said: str) -> None:
    assert results(store, "all", "--limit", 2, *options).stdout == said


def test_a_table_by_default(store: Path) -> None:
    lines = results(store, "gone").stdout.split("\n")
    assert [line.split() for line in lines[:2]] == [["value", "text"], ["2", "row", "2"]]


def test_parquet_goes_to_a_file(store: Path, tmp_path: Path) -> None:
    assert results(store, "all", "--format", "parquet", "--out", tmp_path / "rows.parquet").exit_code == 0
    assert pq.read_table(tmp_path / "rows.parquet").column("value").to_pylist() == [1, 2, 3, 4, 5, 6]


def test_a_job_file_leads_to_its_store(store: Path, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text("streams: {clock: {source: {type: rate, rate: 1}}}")
    assert results(tmp_path / "job.yaml", "all", "--format", "csv").stdout.endswith('6,"row 6"\n')


def test_follow_with_a_limit_ends_by_itself(store: Path) -> None:
    assert results(store, "all", "--follow", "--limit", 2, "--format", "json").stdout.count("\n") == 2


def test_without_a_query_all_are_listed(store: Path) -> None:
    listed = results(store)
    assert "6 queries" in listed.stdout
    assert "left before it began" in listed.stdout
    assert "1970-01-01 00:00:05" in listed.stdout
    assert "2: value, text" in listed.stdout
    rows = {line.split()[0]: line for line in listed.stdout.splitlines() if line.strip()}
    assert all("beginning" not in rows[name] and "0001-01-01" not in rows[name] for name in ("never", "new"))
    found = json.loads(results(store, "--format", "json").stdout)
    assert [query["name"] for query in found] == ["all", "gone", "never", "new", "replaced", "since"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["{store}", "al"], 1, "did you mean all?"),
        (["{store}", "--format", "csv"], 2, "name a QUERY"),
        (["{store}", "all", "--format", "parquet"], 1, "name one with --out FILE"),
        (["{store}/nothing"], 1, "expected a job file or the store of a job"),
    ],
)
def test_mistakes_are_reported(store: Path, arguments: list[str], code: int, said: str) -> None:
    result = results(*(argument.format(store=store) for argument in arguments))
    assert (result.exit_code, result.stdout) == (code, "")
    assert said in result.stderr


def test_what_a_query_that_leaves_waits_for_is_reported(store: Path) -> None:
    assert "withdrawing" not in results(store).stderr
    journal = Journal(Store(store).journal)
    journal.save([replace(part, done=False) for part, _ in journal.parts(4)])
    journal.close()
    message = (
        "withdrawing, until every stream that they read has come to their end: gone (rows from 1970-01-01 00:00:05 on)"
    )
    assert message in results(store).stderr


def test_a_query_that_was_set_aside_shows_what_it_had_answered_and_why(store: Path) -> None:
    journal = Journal(Store(store).journal)
    journal.save([QueryRecord(4, "gone", "SELECT v FROM gone", False, failed="a fault")])
    journal.close()
    shown = results(store, "gone", "--format", "csv")
    assert shown.stdout.splitlines()[1:] == ['2,"row 2"', '3,"row 3"', '4,"row 4"']
    assert "gone was set aside, since its carrier failed with it: a fault\n    -> submit it again" in shown.stderr
    listed = {q["name"]: (q["state"], q["failed"]) for q in json.loads(results(store, "--format", "json").stdout)}
    assert listed["gone"] == ("set aside", "a fault") and listed["never"] == ("withdrawn", None)
