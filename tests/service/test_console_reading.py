"""What the console asks beside the loop that runs the job."""

from __future__ import annotations

from pathlib import Path

from towpath.console.reading import CheckRequest, ExplainRequest, check, explained
from towpath.job import load

JOB = """
streams: {clock: {source: {type: rate, rate: 100}}}
views:
  busy: SELECT value % 10 AS d, count(*) AS n FROM clock [RANGE 10 SECONDS] GROUP BY value % 10
"""


def test_texts_know_the_views_of_the_job(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB)
    job = load(tmp_path / "job.yaml")
    found = check(job, CheckRequest("SELECT d, n FROM busy WHERE n > 3"))
    assert (found.problems, found.columns) == ([], {"d": "bigint", "n": "bigint"})
    (problem,) = check(job, CheckRequest("SELECT d,\n m FROM busy")).problems
    assert (problem.line, problem.column, problem.message) == (2, 2, "m is not a column of busy")
    assert len(explained(job, ExplainRequest("SELECT d, n FROM busy WHERE n > 3")).pieces) == 2
