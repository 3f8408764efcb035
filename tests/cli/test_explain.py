from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from towpath import job as jobs
from towpath.api import explaining
from towpath.api.checking import parse_all
from towpath.cli import main
from towpath.config.nodes import EmbeddedNode
from towpath.control.decide.controller import Controller, Submission
from towpath.control.decide.requests import planned, request_of, take_in
from towpath.control.journal.journal import Journal
from towpath.control.state.records import State
from towpath.lab.testing.queries import random_shape
from towpath.lab.testing.recording import random_recording
from towpath.lang import parse
from towpath.plan.build import build, optimise
from towpath.plan.operators import Scan, WindowAggregate
from towpath.plan.pipeline import pipelines
from towpath.store.layout import Store
from towpath.streams.definition import StreamDef
from towpath.streams.sources import RateSource

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


def job_file(folder: Path, queries: Mapping[str, Any], carriers: str = "auto") -> Path:
    file = folder / "job.yaml"
    file.write_text(f"{STREAMS}\ncarriers: {carriers}\nqueries: {json.dumps(queries)}\n")
    return file


def explain(file: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["explain", str(file), *arguments])


def test_a_query_of_another_dialect_is_shown_in_towpaths_own(tmp_path: Path) -> None:
    text = """
        INSERT INTO top_bids SELECT channel, max(price) AS top
        FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(at), INTERVAL '10' SECOND)) GROUP BY channel, window_start, window_end
    """
    shown = explain(job_file(tmp_path, {"top": text, **QUERIES}), "top").output
    own = "MAX(bids.price) AS top FROM bids AS bids [RANGE 10 SECONDS] GROUP BY bids.channel"
    assert own in " ".join(shown.split())
    assert "the text calls its results top_bids; they are kept under the query's name, top" in shown
    assert "in towpath's SQL" not in explain(job_file(tmp_path, QUERIES), "hot").output


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
        controller.queries.submit([Submission(name, query.sql, tuple(c.name for c in query.columns), made)])
    journal.save(controller.changed.values())
    journal.close()


def test_what_is_read_again_is_said_in_words(tmp_path: Path) -> None:
    run_before(job_file(tmp_path, {"hot": QUERIES["hot"], "web": QUERIES["web"]}))
    journal = Journal(tmp_path / "store" / "journal.sqlite")
    state = journal.load()
    journal.save([replace(carrier, inputs_us=(12_000_000,)) for carrier in state.carriers.values()])
    journal.close()
    price = "SELECT auction, price FROM bids WHERE price > 8"
    asked = {
        "hot": {"sql": QUERIES["hot"]},
        "web": {"sql": "SELECT auction, price FROM bids WHERE channel = 'app'"},
        "equal": {"sql": QUERIES["hot-too"], "from": "beginning"},
        "past": {"sql": price},
        "since": {"sql": price, "from": "1970-01-01T00:00:12Z"},
        "later": {"sql": price, "from": "1970-01-01T00:00:13Z"},
        "now": {"sql": price, "from": "now"},
        "alone": {"sql": "SELECT count(*) AS n FROM bids [RANGE 1 SECOND]", "from": "now"},
    }
    again = "others have read its streams up to 1970-01-01 00:00:12.000, so they are read again from their beginning, "
    again += "by a Spark query of its own until it has caught up"
    found = json.loads(explain(job_file(tmp_path, asked), "--all", "--json").stdout)["queries"]
    assert {name: query["selects"][0]["start"] for name, query in found.items()} == {
        "hot": "as it stands; nothing is read again",
        "web": "where the version that stands ends; nothing is read again",
        "equal": "the beginning; nothing is read again",
        "past": f"the beginning; {again}",
        "since": f"1970-01-01 00:00:12.000; {again}",
        "later": "1970-01-01 00:00:13.000; nothing is read again",
        "now": "now; nothing is read again",
        "alone": "now; its streams are read from their beginning, by the new carrier",
    }
    assert f"  from: the beginning; {again}" in explain(tmp_path / "job.yaml", "past").stdout


def test_the_plan_the_template_and_the_parameters_are_shown(tmp_path: Path) -> None:
    result = explain(job_file(tmp_path, QUERIES), "hot")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "hot"
    assert any(line.endswith("F1        └─ filter i0.price > 900") for line in lines)
    assert "    ranges of     i0.price" in lines
    assert "    tuples with  i0.price > 900.0" in lines


def test_without_a_store_the_queries_of_the_job_are_compared(tmp_path: Path) -> None:
    file = job_file(tmp_path, QUERIES, carriers="compiled")
    shared = sharing(file)
    assert shared["hot"][0]["equal"] == ["hot-too", "alerts"]
    assert len(shared["alerts"]) == 2
    assert shared["alerts"][1]["equal"] == []
    assert shared["web"][0]["carrier"] == shared["hot"][0]["carrier"]
    assert (
        "sharing: fragment 1 in carrier c0 (filter), beside 1 other there, equal to hot-too, alerts"
        in explain(file).stdout
    )
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        (QUERIES["hot-too"], "runs already as fragment 1 in carrier c0 (filter), equal to hot"),
        (
            "SELECT price FROM bids WHERE price < 5",
            "a new row in carrier c0 (filter), no restart, beside 1 other there; compiled, since c0 has a plan for it",
        ),
        (
            "SELECT price, bidder FROM bids WHERE channel = 'web' AND price > 5",
            "needs a new carrier c1 (universal filter), alone there: c0 lacks a lookup by i0.channel, the "
            "output i0.bidder; universal, since a node would have 2 shapes of such queries",
        ),
        (
            "SELECT reserve FROM auctions",
            "needs a new carrier c1 (filter), alone there: no carrier has these streams, join columns and kind of "
            "window; compiled, since a node has few shapes of such queries",
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
        (True, []),  # of the version before, which goes on until this one takes over
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


def test_names_that_no_query_has_are_reported_all_at_once(tmp_path: Path) -> None:
    result = explain(job_file(tmp_path, QUERIES), "hott", "hot", "nothing-like-it")
    assert result.exit_code == 1
    assert "'hott' (did you mean hot?), 'nothing-like-it'" in result.stderr


def test_a_mistake_in_the_sql_is_reported(tmp_path: Path) -> None:
    result = explain(job_file(tmp_path, QUERIES), "--sql", "SELECT prize FROM bids")
    assert result.exit_code == 1
    assert "^^^^^" in result.stderr


COUNTED = (
    "SELECT a.item, count(*) AS n FROM bids [RANGE 1 SECOND] b, auctions [RANGE 1 SECOND] a WHERE b.auction = a.id "
    "GROUP BY a.item"
)


@pytest.mark.parametrize(("fragments", "number"), [("one_per_operator", 2), ("one_per_query", 1)])
@pytest.mark.parametrize("where", ["job", "option"])
def test_queries_are_cut_as_they_run(tmp_path: Path, where: str, fragments: str, number: int) -> None:
    file = job_file(tmp_path, {"join": COUNTED})
    if where == "job":
        file.write_text(file.read_text() + f"fragments: {fragments}\n")
    result = explain(file, *(["--fragments", fragments] if where == "option" else []), "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)["queries"]["join"]
    assert len(found["fragments"]) == len(found["selects"]) == number
    assert [bool(select["derived"]) for select in found["selects"]] == [True, False][-number:]


def test_copies_are_explained_also_when_they_run_already(tmp_path: Path) -> None:
    file = job_file(tmp_path, {})
    nodes = "nodes: {left: {type: embedded, cores: 1}, right: {type: embedded, cores: 1}}\n"
    query = {"q": {"sql": QUERIES["alerts"], "copies": 2}}
    file.write_text(f"{STREAMS}{nodes}queries: {json.dumps(query)}\n")
    fresh = json.loads(explain(file, "--json").stdout)["queries"]["q"]["selects"]
    job = jobs.load(file)
    journal = Journal(Store(job.store).journal)
    controller = Controller(journal.load(), job.catalog, list(job.nodes))
    asked = [request_of(parse_all(job)["q"], job.queries["q"], job.fragments)]
    take_in(planned(asked, controller, job.catalog), controller)
    journal.save(controller.changed.values())
    journal.close()
    again = json.loads(explain(file, "--json").stdout)["queries"]["q"]["selects"]
    assert [[c["node"] for c in select["copies"]] for select in fresh] == [["left", "right"]] * 2
    assert [[c["fragment_runs"] for c in select["copies"]] for select in again] == [[True, True]] * 2
    assert "sharing (a copy on right): runs already as fragment" in explain(file).stdout


def job_of(tmp_path: Path, catalog: dict[str, Any], sql: str, definition: dict[str, Any]) -> jobs.Job:
    node = EmbeddedNode.model_validate({"type": "embedded", "cores": 1})
    source = RateSource.model_validate({"type": "rate", "rate": 1})
    streams = {name: StreamDef(stream, source, idle_after_ms=0) for name, stream in catalog.items()}
    queries = {"q": jobs.QueryDef.model_validate({"sql": sql, **definition})}
    results = jobs.ResultsDef.model_validate({})
    return jobs.Job(tmp_path / "no-store", 100, streams, {"a": node, "b": node}, queries, None, results)


@given(
    st.randoms(use_true_random=False),
    st.sampled_from([{}, {"fragments": "one_per_operator"}, {"fragments": "one_per_query"}, {"copies": 2}]),
)
@settings(max_examples=60, deadline=None)
def test_what_is_explained_is_what_runs(rng: Random, definition: dict[str, Any]) -> None:
    """Law: explain, and the cut of problem files, have the fragments that the controller makes."""
    catalog = random_recording(rng).catalog
    with TemporaryDirectory() as folder:
        job = job_of(Path(folder), catalog, random_shape(rng, catalog).text(), definition)
        (entry,) = explaining.explain(job)
        controller = Controller(State(), job.catalog, list(job.nodes))
        asked = [request_of(parse_all(job)["q"], job.queries["q"], job.fragments)]
    take_in(planned(asked, controller, job.catalog), controller)
    made = controller.state.fragments
    explained = {share.fragment: piece for piece in entry.pieces for share in piece.shares}
    assert explained.keys() == made.keys()
    assert {f: p.pipeline.signature for f, p in explained.items()} == {f: r.signature for f, r in made.items()}
    for piece in entry.pieces:
        assert len(piece.shares) == (definition.get("copies", 1))
    tops = [f for f in entry.fragments if not any(f.number in g.upstream for g in entry.fragments)]
    assert len(tops) == sum(piece.link is None for piece in entry.pieces)
    lower = [f for f in entry.fragments if f not in tops]
    assert bool(lower) == any(piece.link for piece in entry.pieces)
    for fragment, piece in zip(tops, (p for p in entry.pieces if p.link is None), strict=True):
        aggregates = any(isinstance(op, WindowAggregate) for op in fragment.operators)
        assert aggregates == (piece.pipeline.window is not None)
        reads = sum(isinstance(op, Scan) for op in fragment.operators) or len(fragment.upstream)
        assert reads == len(piece.pipeline.sources)
