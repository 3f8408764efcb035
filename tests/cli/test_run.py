from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from towpath.cli import main
from towpath.cli.failures import STOPPED

JOB = """
trigger: 200 ms
streams:
  orders:
    source: {type: files, path: ./orders, format: csv}
    schema: {id: bigint, amount: double, at: timestamp}
    time: at
nodes: {local: {type: embedded, cores: 2, memory: 1g}}
queries:
  large: SELECT id, amount FROM orders WHERE amount > 10
  per-minute: SELECT count(*) AS n FROM orders [RANGE 1 MINUTE]
queries_folder: ./queries
"""
TOWPATH = [sys.executable, "-c", "from towpath.cli import main; main()"]


@pytest.fixture
def job(tmp_path: Path) -> Path:
    (tmp_path / "orders").mkdir()
    (tmp_path / "queries").mkdir()
    rows = "".join(f"{n},{n},2026-01-01T00:00:{n:02}Z\n" for n in range(20))
    (tmp_path / "orders" / "1.csv").write_text(f"id,amount,at\n{rows}")
    (tmp_path / "job.yaml").write_text(JOB)
    return tmp_path / "job.yaml"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, list(map(str, arguments)))


@pytest.mark.spark
def test_until_caught_up_keeps_windows_open_and_until_drained_closes_them(job: Path) -> None:
    result = run("run", job, "--until-caught-up", "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert (report["state"], report["queries"], report["results"], report["late"]) == ("caught up", 2, 9, 0)
    assert (report["late_by_stream"], report["closed_us"]) == ({}, None)
    assert {c["kind"]: c["rows"] for c in report["carriers"]} == {"filter": 20, "tumbling aggregate": 20}
    again = run("run", job, "--until-drained")
    assert again.stdout == (
        "drained: 2 queries, 10 results, 0 late rows\n"
        "all windows were closed; rows from before 2026-01-01 00:01:00 that come later are late\n"
    )
    assert run("results", job, "large", "--limit", 1, "--format", "csv").stdout == '"id","amount"\n19,19\n'
    assert run("results", job, "per-minute", "--format", "csv").stdout == '"n"\n20\n'


@pytest.mark.spark
@pytest.mark.live
@pytest.mark.parametrize("everybody", [False, True], ids=["SIGINT", "SIGTERM for Spark, too"])
def test_a_signal_stops_it_cleanly(job: Path, everybody: bool) -> None:
    """`timeout` and systemd signal all processes of a group."""
    process = subprocess.Popen(
        [*TOWPATH, "run", str(job)],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        assert process.stderr
        said = ""
        while "running: 2 queries" not in said:
            line = process.stderr.readline()
            assert line, said
            said += line
        (job.parent / "queries" / "wrong.sql").write_text("SELECT idd FROM orders")
        while "idd" not in said:
            said += process.stderr.readline()
        if everybody:
            os.killpg(process.pid, signal.SIGTERM)
        else:
            process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=300)
    if not everybody:
        assert process.returncode == 0
        assert re.fullmatch(r"stopped: 2 queries, \d+ results, 0 late rows\n", out)
    assert process.returncode in (0, STOPPED)
    assert "internal error" not in err
    assert err.endswith(f"stopped; `towpath run {job}` goes on from here\n")
    assert "Traceback" not in said + err


def test_windows_cannot_be_both_closed_and_kept_open(job: Path) -> None:
    result = run("run", job, "--until-drained", "--until-caught-up")
    assert result.exit_code == 2
    assert "give one of them" in result.output


def test_a_wrong_query_is_reported_before_spark_starts(job: Path) -> None:
    job.write_text(JOB.replace("amount > 10", "amont > 10"))
    result = run("run", job)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "did you mean amount" in result.stderr
