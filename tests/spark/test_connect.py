"""The same on Spark Connect endpoints: real servers, each in a process of its own."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.spark.folders import arrive, write_job

from towpath import job as jobs
from towpath.api.running import Towpath, start
from towpath.config.nodes import ConnectNode
from towpath.errors import RuntimeFailure
from towpath.lab.testing.drawing import plain_workload
from towpath.lab.testing.running import EMBEDDED, run
from towpath.runtime.remote_node import RemoteNode
from towpath.spark import processes, server
from towpath.spark.connect import CLOSED, _connect, connect, session_id
from towpath.spark.runtime import SparkRuntime
from towpath.spark.server import Server

pytestmark = [pytest.mark.spark, pytest.mark.live]

QUICK_START = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
PATIENCE_S = 90

# A controller in a process of its own, which is to be killed.
CONTROLLER = """
import sys, time
from towpath.api.running import start
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
    outcome = run(plain_workload(3), tmp_path, {"far": node(endpoint)})
    assert not outcome.differences
    assert outcome.rows


def test_queries_move_between_this_process_and_an_endpoint(endpoint: Server, tmp_path: Path) -> None:
    outcome = run(plain_workload(4), tmp_path, {"here": EMBEDDED, "far": node(endpoint)})
    assert not outcome.differences
    assert outcome.moves


def test_who_has_no_token_is_refused(endpoint: Server, tmp_path: Path) -> None:
    """Somebody else of this machine, who knows where the server listens and cannot read its folder."""
    strange = tmp_path / "token"
    for token in ("guessed", "a=b;c/d%20+&"):
        strange.write_text(f"{token}\n")
        other = node(endpoint).model_copy(update={"token_file": str(strange)})
        with pytest.raises(
            RuntimeFailure, match=r"Invalid authentication token\n    -> it asks for a token"
        ) as refused:
            connect("far", other, tmp_path)
        assert token not in str(refused.value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, "servers", dict)
        with pytest.raises(RuntimeFailure, match="No authentication token provided"):
            connect("far", node(endpoint), tmp_path)


def test_its_owner_finds_the_token_also_under_another_name_of_this_machine(endpoint: Server, tmp_path: Path) -> None:
    address = endpoint.address.replace("127.0.0.1", "localhost")
    named = ConnectNode.model_validate({"type": "connect", "address": address, "cores": 2})
    assert connect("far", named, tmp_path).range(3).count() == 3
    given = node(endpoint).model_copy(update={"token_file": endpoint.token_file})
    assert connect("far", given, tmp_path).range(3).count() == 3


def test_nobody_else_can_read_the_token_of_a_server(endpoint: Server) -> None:
    file = Path(endpoint.token_file)
    token = file.read_text()
    assert [stat.S_IMODE(path.stat().st_mode) for path in (file, file.parent, server.folder())] == [0o600, 0o700, 0o700]
    log = Path(endpoint.log)
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    everybody_reads = [Path("/proc", str(pid), "cmdline") for pid in processes.all_processes()]
    for path in [*everybody_reads, server.folder() / f"{endpoint.name}.json"]:
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            assert token.encode() not in path.read_bytes()


def test_carriers_outlive_their_controller_and_are_found_again(endpoint: Server, tmp_path: Path) -> None:
    job = far_job(tmp_path, endpoint.address)
    run_and_kill(job)
    arrive(tmp_path, "s", [(3, 5.0, 3)])
    with start(job) as running:
        (watched,) = running.engine._nodes.values()
        assert isinstance(watched, RemoteNode)
        wait_for_results(running, [1, 2, 3])
        assert isinstance(watched.inner, SparkRuntime) and watched.inner.adopted == ["c0"]
    log = Path(endpoint.log).read_text()
    assert "token=..." in log  # Spark's own worker for micro-batches printed it
    assert Path(endpoint.token_file).read_text() not in log


def far_job(folder: Path, address: str) -> Path:
    """A query on an endpoint, with two rows that it is to find."""
    job = write_job(folder, ["s"], {"big": "SELECT k FROM s WHERE x > 1"})
    text = job.read_text()
    line = next(line for line in text.splitlines() if "type: embedded" in line)
    job.write_text(text.replace(line, f"  far: {{type: connect, address: '{address}', cores: 2}}"))
    arrive(folder, "s", [(1, 5.0, 1), (2, 5.0, 2)])
    return job


def run_and_kill(job: Path) -> None:
    """A controller that is killed when it has found two rows."""
    controller = subprocess.Popen([sys.executable, "-c", CONTROLLER, str(job)], stdout=subprocess.PIPE, text=True)
    assert controller.stdout is not None and controller.stdout.readline() == "ready\n"
    os.kill(controller.pid, signal.SIGKILL)
    controller.wait()


def wait_for_results(running: Towpath, keys: list[int]) -> None:
    end = time.monotonic() + PATIENCE_S
    while running.results("big").num_rows < len(keys):
        assert time.monotonic() < end, "the carrier does nothing"
        running.poll()
        time.sleep(0.2)
    assert running.results("big")["k"].to_pylist() == keys


def test_an_endpoint_that_has_ended_an_idle_session_goes_on_from_the_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    impatient = {
        "spark.connect.session.manager.defaultSessionTimeout": "3s",
        "spark.connect.session.manager.maintenanceInterval": "1s",
    }
    endpoint = server.start("impatient", 2, "2g", None, QUICK_START | impatient, lambda: None)
    try:
        job = far_job(tmp_path, endpoint.address)
        run_and_kill(job)
        wait_until_closed(endpoint, session_id("far", jobs.load(job).store, 0))
        arrive(tmp_path, "s", [(3, 5.0, 3)])
        with start(job) as running:
            wait_for_results(running, [1, 2, 3])
        with start(job) as running:  # finds the session that took the place of the first
            arrive(tmp_path, "s", [(4, 5.0, 4)])
            wait_for_results(running, [1, 2, 3, 4])
    finally:
        server.stop("impatient")


def wait_until_closed(endpoint: Server, session: str) -> None:
    """Asks so seldom that asking does not keep the session alive."""
    end = time.monotonic() + PATIENCE_S
    while True:
        time.sleep(6)
        try:
            _connect("far", node(endpoint), session)
        except RuntimeFailure as error:
            assert CLOSED in str(error.__cause__)
            return
        assert time.monotonic() < end, "the endpoint keeps a session that nobody uses"


def test_an_endpoint_of_ours_never_ends_an_idle_session(endpoint: Server, tmp_path: Path) -> None:
    session = connect("far", node(endpoint), tmp_path)
    assert session.conf.get("spark.connect.session.manager.defaultSessionTimeout") == "-1"


def test_an_endpoint_without_the_connector_for_kafka_is_reported(endpoint: Server, tmp_path: Path) -> None:
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
    message = r"node far: its Spark has no connector for Kafka(.|\n)*towpath node start NAME --packages org.apache"
    with pytest.raises(RuntimeFailure, match=message):
        start(job)


def test_an_endpoint_that_does_not_answer_is_reported(tmp_path: Path) -> None:
    job = write_job(tmp_path, ["s"], {})
    text = job.read_text()
    line = next(line for line in text.splitlines() if "type: embedded" in line)
    job.write_text(text.replace(line, "  far: {type: connect, address: 'sc://127.0.0.1:1', cores: 2}"))
    with pytest.raises(RuntimeFailure, match=r"node far: sc://127\.0\.0\.1:1 does not answer"):
        start(job)
