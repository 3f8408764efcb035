"""The same on Spark Connect endpoints: real servers, each in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.spark.folders import arrive, write_job

from towpath.api import start
from towpath.control.watched import Watched
from towpath.errors import RuntimeFailure
from towpath.nodes import ConnectNode
from towpath.spark import server
from towpath.spark.runtime import SparkRuntime
from towpath.spark.server import Server
from towpath.testing.running import EMBEDDED, run
from towpath.testing.workload import example_workload

pytestmark = [pytest.mark.spark, pytest.mark.live]

QUICK_START = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
PATIENCE_S = 90

# A controller in a process of its own, which is to be killed.
CONTROLLER = """
import sys, time
from towpath.api import start
with start(sys.argv[1]) as running:
    while running.results("big").num_rows < 2:
        running.poll()
        time.sleep(0.2)
    print("ready", flush=True)
    time.sleep(600)
"""


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield server.start("test", 2, "2g", None, QUICK_START, lambda: None)
        server.stop("test")


def node(endpoint: Server) -> ConnectNode:
    return ConnectNode.model_validate({"type": "connect", "address": endpoint.address, "cores": 2})


@pytest.mark.long
def test_queries_on_an_endpoint_equal_the_batch(endpoint: Server, tmp_path: Path) -> None:
    outcome = run(example_workload(3), tmp_path, {"far": node(endpoint)})
    assert not outcome.differences
    assert outcome.rows


def test_queries_move_between_this_process_and_an_endpoint(endpoint: Server, tmp_path: Path) -> None:
    outcome = run(example_workload(4), tmp_path, {"here": EMBEDDED, "far": node(endpoint)})
    assert not outcome.differences
    assert outcome.moves


def test_carriers_outlive_their_controller_and_are_found_again(endpoint: Server, tmp_path: Path) -> None:
    job = write_job(tmp_path, ["s"], {"big": "SELECT k FROM s WHERE x > 1"})
    text = job.read_text()
    line = next(line for line in text.splitlines() if "type: embedded" in line)
    job.write_text(text.replace(line, f"  far: {{type: connect, address: '{endpoint.address}', cores: 2}}"))
    arrive(tmp_path, "s", [(1, 5.0, 1), (2, 5.0, 2)])
    controller = subprocess.Popen([sys.executable, "-c", CONTROLLER, str(job)], stdout=subprocess.PIPE, text=True)
    assert controller.stdout is not None and controller.stdout.readline() == "ready\n"
    os.kill(controller.pid, signal.SIGKILL)
    controller.wait()
    arrive(tmp_path, "s", [(3, 5.0, 3)])
    with start(job) as running:
        (watched,) = running.engine._nodes.values()
        assert isinstance(watched, Watched)
        end = time.monotonic() + PATIENCE_S
        while running.results("big").num_rows < 3:
            assert time.monotonic() < end, "the carrier that was found does nothing"
            running.poll()
            time.sleep(0.2)
        assert running.results("big")["k"].to_pylist() == [1, 2, 3]
        assert isinstance(watched.inner, SparkRuntime) and watched.inner.adopted == ["c0"]


def test_an_endpoint_without_the_connector_for_kafka_is_told(endpoint: Server, tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(f"""
nodes: {{far: {{type: connect, address: "{endpoint.address}", cores: 2}}}}
streams:
  s:
    source: {{type: kafka, servers: "127.0.0.1:1", topic: t}}
    schema: {{k: bigint, at: timestamp}}
    time: at
queries: {{q: SELECT k FROM s}}
""")
    told = r"node far: its Spark has no connector for Kafka(.|\n)*towpath node start NAME --packages org.apache"
    with pytest.raises(RuntimeFailure, match=told):
        start(job)


def test_an_endpoint_that_does_not_answer_is_told(tmp_path: Path) -> None:
    job = write_job(tmp_path, ["s"], {})
    text = job.read_text()
    line = next(line for line in text.splitlines() if "type: embedded" in line)
    job.write_text(text.replace(line, "  far: {type: connect, address: 'sc://127.0.0.1:1', cores: 2}"))
    with pytest.raises(RuntimeFailure, match=r"node far: sc://127\.0\.0\.1:1 does not answer"):
        start(job)
