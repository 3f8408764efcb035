from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from towpath import job as jobs
from towpath.cli import main
from towpath.control.controller import Controller, Submission
from towpath.control.journal import Journal
from towpath.lang import parse
from towpath.plan.build import build, optimise
from towpath.plan.pipeline import pipelines
from towpath.store import Store

STREAMS = """
store: ./store
streams:
  bids: {source: {type: auction, table: bids, rate: 100, seed: 1}}
  auctions: {source: {type: auction, table: auctions, rate: 100, seed: 1}}
"""
QUERIES = {
    "hot": "SELECT auction, price FROM bids WHERE price > 900",
    "hot-too": "SELECT b.price, b.auction FROM bids AS b WHERE 900 < b.price",
    "web": "SELECT auction, price FROM bids WHERE channel = 'web'",
    "alerts": "SELECT price FROM bids WHERE price > 900 UNION ALL SELECT reserve FROM auctions WHERE reserve > 5",
}


def job_file(folder: Path, queries: dict[str, str]) -> Path:
    file = folder / "job.yaml"
    file.write_text(f"{STREAMS}\nqueries: {json.dumps(queries)}\n")
    return file


def explain(file: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["explain", str(file), *arguments])


def sharing(file: Path, *arguments: str) -> dict[str, list[dict[str, Any]]]:
    result = explain(file, *arguments, "--json")
    assert result.exit_code == 0, result.output
    queries = json.loads(result.stdout)["queries"]
    return {name: [select["sharing"] for select in query["selects"]] for name, query in queries.items()}


def run_before(file: Path) -> None:
    """Leaves a store as a run of the job would."""
    job = jobs.load(file)
    journal = Journal(Store(job.store).journal)
    controller = Controller(journal.load(), job.catalog)
    for name, definition in job.queries.items():
        query = parse(definition.sql, job.catalog, name)
        made = pipelines(optimise(build(query), job.catalog), job.catalog)
        controller.submit([Submission(name, query.sql, tuple(c.name for c in query.columns), made)])
    journal.save(controller.changed.values())
    journal.close()


def test_the_plan_the_template_and_the_parameters_are_shown(tmp_path: Path) -> None:
    result = explain(job_file(tmp_path, QUERIES), "hot")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "hot"
    assert any(line.endswith("F1        └─ filter i0.price > 900") for line in lines)
    assert "    ranges of     i0.price" in lines
    assert "    tuples with  i0.price > 900.0" in lines


def test_without_a_store_the_queries_of_the_job_are_compared(tmp_path: Path) -> None:
    file = job_file(tmp_path, QUERIES)
    shared = sharing(file)
    assert shared["hot"][0]["equal"] == ["hot-too", "alerts"]
    assert len(shared["alerts"]) == 2
    assert shared["alerts"][1]["equal"] == []
    assert shared["web"][0]["carrier"] == shared["hot"][0]["carrier"]
    assert "sharing: fragment 1 in carrier c0, beside 1 other there, equal to hot-too, alerts" in explain(file).stdout
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        (QUERIES["hot-too"], "runs already as fragment 1 in carrier c0, equal to hot"),
        ("SELECT price FROM bids WHERE price < 5", "a new row in carrier c0, no restart, beside 1 other there"),
        (
            "SELECT price, bidder FROM bids WHERE channel = 'web' AND price > 5",
            "needs a new carrier c1, alone there: c0 lacks a lookup by i0.channel, the output i0.bidder",
        ),
        (
            "SELECT reserve FROM auctions",
            "needs a new carrier c1, alone there: no carrier has these streams, join columns and kind of window",
        ),
    ],
    ids=["equal", "covered", "same family", "other family"],
)
def test_a_query_is_compared_with_what_runs(tmp_path: Path, sql: str, said: str) -> None:
    file = job_file(tmp_path, {"hot": QUERIES["hot"]})
    run_before(file)
    result = explain(file, "--sql", sql)
    assert result.exit_code == 0, result.output
    assert f"  sharing: {said}\n" in result.stdout


def test_what_was_added_or_changed_in_the_job_is_compared_with_what_runs(tmp_path: Path) -> None:
    file = job_file(tmp_path, {"hot": QUERIES["hot"], "web": QUERIES["web"]})
    run_before(file)
    shared = sharing(job_file(tmp_path, {"hot": QUERIES["hot"], "web": QUERIES["hot-too"], "more": QUERIES["web"]}))
    assert [(s["fragment_runs"], s["equal"]) for (s,) in shared.values()] == [
        (True, ["web"]),
        (True, ["hot"]),
        (False, []),
    ]


def test_the_store_is_left_as_it_was(tmp_path: Path) -> None:
    file = job_file(tmp_path, QUERIES)
    run_before(file)
    before = Journal(Store(tmp_path / "store").journal, read_only=True).load()
    explain(file, "--sql", "SELECT reserve FROM auctions")
    assert Journal(Store(tmp_path / "store").journal, read_only=True).load() == before


def test_twenty_queries_are_shown_unless_all_are_asked_for(tmp_path: Path) -> None:
    file = job_file(tmp_path, {f"q{n}": f"SELECT price FROM bids WHERE price > {n}" for n in range(25)})
    few, all_ = explain(file), explain(file, "--all")
    assert few.stdout.count("signature") == 20
    assert "5 more queries; name the ones you want, or use --all" in few.stderr
    assert all_.stdout.count("signature") == 25
    assert len(json.loads(explain(file, "--json").stdout)["queries"]) == 25


def test_names_that_no_query_has_are_told_all_at_once(tmp_path: Path) -> None:
    result = explain(job_file(tmp_path, QUERIES), "hott", "hot", "nothing-like-it")
    assert result.exit_code == 1
    assert "'hott' (did you mean hot?), 'nothing-like-it'" in result.stderr


def test_a_mistake_in_the_sql_is_told(tmp_path: Path) -> None:
    result = explain(job_file(tmp_path, QUERIES), "--sql", "SELECT prize FROM bids")
    assert result.exit_code == 1
    assert "^^^^^" in result.stderr


@pytest.mark.parametrize(
    ("fragmenter", "number"), [("one_per_stream", 2), ("one_per_operator", 4), ("one_per_query", 1)]
)
def test_a_fragmenter_can_be_chosen(tmp_path: Path, fragmenter: str, number: int) -> None:
    join = "SELECT b.price FROM bids [RANGE 1 SECOND] b, auctions [RANGE 1 SECOND] a WHERE b.auction = a.id"
    result = explain(job_file(tmp_path, {"join": join}), "--fragmenter", fragmenter, "--json")
    assert len(json.loads(result.stdout)["queries"]["join"]["fragments"]) == number
