"""A job as a service, on two nodes of real Spark: commands come while data flows, and no result is lost or doubled."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families

from towpath.api.reader import Reader
from towpath.cli import main

RATE = 100
METRICS = "for-metrics-alone"
JOB = f"""
trigger: 200 ms
streams:
  clock: {{source: {{type: rate, rate: {RATE}}}}}
nodes:
  left: {{type: embedded, cores: 1, memory: 1g}}
  right: {{type: embedded, cores: 1, memory: 1g}}
queries:
  all: SELECT value FROM clock
  counts: SELECT count(*) AS n FROM clock [RANGE 1 SECOND]
"""
TOWPATH = [sys.executable, "-c", "from towpath.cli import main; main()"]


@contextmanager
def up(job: Path) -> Iterator[None]:
    """As a service that is watched: what it says is JSON, and whoever has METRICS reads its metrics."""
    token = job.with_name("metrics.token")
    token.write_text(METRICS)
    command = [*TOWPATH, "up", str(job), "--log-format", "json", "--metrics-token", str(token)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with process:
        assert process.stderr is not None
        said = ""
        while "serving" not in said:
            line = process.stderr.readline()
            assert line, said
            said += line
        try:
            yield
        finally:
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert out.startswith("stopped: 2 queries") and "Traceback" not in said + err
    *_, last = [json.loads(line)["message"] for line in (said + err).splitlines()]
    assert last == f"stopped; `towpath up {job}` goes on from here"
    assert all(json.loads(line)["time"] for line in (job.with_suffix(".store") / "log/towpath.log").open())


def watched(job: Path) -> None:
    """From outside it is well, and its metrics are of what it does."""
    address = json.loads((job.with_suffix(".store") / "service.json").read_text())["address"]
    with httpx2.Client(base_url=address, trust_env=False) as http:
        assert http.get("/healthz").json() == {"alive": True}
        ready = http.get("/readyz")
        assert (ready.status_code, ready.json()["nodes"]) == (200, "2 of 2 answer")
        assert http.get("/metrics").status_code == 401
        text = http.get("/metrics", headers={"Authorization": f"Bearer {METRICS}"}).text
    found = {s.name: s.value for family in text_string_to_metric_families(text) for s in family.samples if not s.labels}
    assert found["towpath_rows_read_total"] > 0 and found["towpath_result_rows_total"] > 0
    assert found["towpath_micro_batch_duration_seconds_count"] > 1
    assert time.time() - found["towpath_event_timestamp_seconds"] < 60
    assert 'towpath_query_micro_batch_rows{query="all"}' in text and 'towpath_node_up{node="right"} 1.0' in text


def ask(job: Path, *arguments: str) -> Any:
    """A command's JSON."""
    command, *rest = arguments
    named = [command, str(job), *rest] if command in ("status", "history") else [*arguments, "--job", str(job)]
    result = CliRunner().invoke(main, [*named, "--json"])
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def wait_until_it_keeps_up(job: Path) -> None:
    """A fence lies as far ahead as recent micro-batches took in: far, as long as what came during the start is read."""
    while (reached := ask(job, "status")["event_us"]) is None or time.time() - reached / 1e6 > 5:
        time.sleep(0.5)


@pytest.mark.spark
@pytest.mark.live
def test_commands_come_while_data_flows(tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(JOB)
    with up(job):
        wait_until_it_keeps_up(job)
        (taken,) = ask(job, "submit", "odd", "SELECT value FROM clock WHERE value % 2 = 1")
        assert taken["nodes"] == ["left"]
        (moved,) = ask(job, "migrate", "all", "--to", "right", "--wait", "--timeout", "120")
        assert (moved["step"], moved["source"], moved["target"]) == ("done", "left", "right")
        drained = ask(job, "drain", "left", "--wait", "--timeout", "120")
        assert (drained["state"], drained["fragments"], drained["carriers"]) == ("drained", 0, 0)
        assert {q["name"]: q["nodes"] for q in ask(job, "status", "--queries")} == {
            "all": ["right"],
            "counts": ["right"],
            "odd": ["right"],
        }
        refused = CliRunner().invoke(main, ["submit", "q", "SELECT valu FROM clock", "--job", str(job)])
        assert refused.exit_code == 1 and "^^^^" in refused.stderr
        watched(job)
        assert ask(job, "withdraw", "odd") == ["odd"]
        assert ask(job, "status")["queries"] == 2
    assert not (job.with_suffix(".store") / "service.json").exists()
    kinds = [entry["kind"] for entry in ask(job, "history", "--query", "all")]
    assert kinds[0] == "submitted" and kinds[-1] == "move drained" and kinds.count("move passed") == 1
    reader = Reader(job.with_suffix(".store"))
    everything = reader.read("all").column("value").to_pylist()
    assert everything == list(range(len(everything))) and everything
    windows = reader.read("counts").column("n").to_pylist()
    assert len(windows) > 1 and set(windows[1:]) == {RATE}
    odd = reader.read("odd").column("value").to_pylist()
    assert odd == list(range(odd[0], odd[-1] + 1, 2)) and odd[0] % 2 == 1
