"""Which queries run after the job file was edited."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from towpath.checking import parse_all
from towpath.control import edits
from towpath.control.controller import Controller
from towpath.control.records import State
from towpath.control.requests import Request, changed, request_of, take_in
from towpath.errors import JobError
from towpath.job import Job, load
from towpath.lang import parse
from towpath.streams.versions import Version

JOB = """
streams:
  a: {source: {type: files, path: ./a, format: parquet}, schema: {k: bigint, at: timestamp}, time: at}
  b: {source: {type: files, path: ./b, format: csv}, schema: {k: bigint, x: double, at: timestamp}, time: at}
"""
QUERIES = """
queries:
  qa: SELECT k FROM a
  qb: SELECT k FROM b
  cut: {sql: "SELECT count(*) AS n FROM (SELECT l.k FROM b [RANGE 1 MINUTE] AS l, b [RANGE 1 MINUTE] AS r WHERE l.k = r.k) [RANGE 1 MINUTE] AS j", fragments: one_per_operator}
"""  # noqa: E501


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a", "b", "elsewhere"):
        (tmp_path / name).mkdir()
    return tmp_path


def written(folder: Path, text: str) -> Job:
    (folder / "job.yaml").write_text(text)
    return load(folder / "job.yaml")


def run(job: Job, state: State, before: list[Version], *submitted: tuple[str, str]) -> tuple[list[str], list[Version]]:
    """Starts a job as `start` does, and returns which queries were taken in."""
    versions = edits.versions(job, before, state)
    job = replace(job, streams=versions.streams)
    of_job = [request_of(query, job.queries[name], job.fragments) for name, query in parse_all(job).items()]
    asked = edits.requests(job, of_job, state)
    controller = Controller(state, job.catalog)
    fresh = changed(asked, controller, job.catalog)
    take_in(fresh, controller, job.catalog)
    extra = [Request(parse(sql, job.catalog, name)) for name, sql in submitted]
    take_in(extra, controller, job.catalog)
    return [request.query.name for request in fresh], list(versions.all)


def test_what_is_unchanged_goes_on_and_what_reads_another_stream_is_replaced(folder: Path) -> None:
    state = State()
    first, before = run(written(folder, JOB + QUERIES), state, [], ("mine", "SELECT k + 1 AS k FROM a"))
    assert first == ["qa", "qb", "cut"]
    again, before = run(written(folder, JOB + QUERIES), state, before)
    assert again == []
    again, before = run(written(folder, (JOB + QUERIES).replace("./a", "./elsewhere")), state, before)
    assert again == ["qa", "mine"]
    again, before = run(written(folder, (JOB + QUERIES).replace("x: double", "x: string")), state, before)
    assert again == ["qa", "qb", "cut", "mine"]


def test_what_was_submitted_stays_whatever_the_job_file_says(folder: Path) -> None:
    state = State()
    _, before = run(written(folder, JOB + QUERIES), state, [], ("qa", "SELECT k FROM a WHERE k = 7"))
    again, _ = run(written(folder, JOB + QUERIES.replace("FROM a", "FROM a WHERE k = 8")), state, before)
    assert again == []
    running = {q.name: q.sql for q in state.queries.values() if q.running}
    assert running["qa"] == "SELECT k FROM a WHERE k = 7"


@pytest.mark.parametrize(
    ("edited", "said"),
    [
        (JOB.replace("  a:", "  z:"), "query mine: there is no stream a"),
        (JOB.replace("{k: bigint, at", "{other: bigint, at"), "query mine: .*k is not a column"),
    ],
)
def test_what_was_submitted_and_has_lost_its_stream_is_told_before_anything_starts(
    folder: Path, edited: str, said: str
) -> None:
    state = State()
    _, before = run(written(folder, JOB), state, [], ("mine", "SELECT k FROM a"), ("yours", "SELECT k FROM b"))
    queries = dict(state.queries)
    with pytest.raises(JobError, match=said) as caught:
        run(written(folder, edited), state, before)
    assert "yours" not in str(caught.value)
    assert "towpath withdraw mine" in str(caught.value)
    assert state.queries == queries
