"""Nodes that die, hang and wake up again: real servers, killed and paused while queries run on them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from towpath.api.running import Towpath
from towpath.config.nodes import ConnectNode
from towpath.control.journal.journal import Journal
from towpath.control.state.history import EventKind
from towpath.lab.testing.drawing import plain_workload
from towpath.lab.testing.running import EMBEDDED, run
from towpath.spark import server
from towpath.spark.server import Server

pytestmark = [pytest.mark.spark, pytest.mark.live]

QUICK_START = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
PATIENCE_S = 120


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield server.start("victim", 2, "2g", None, QUICK_START, lambda: None)
        server.stop("victim")


def nodes(endpoint: Server) -> dict[str, object]:
    far = {"type": "connect", "address": endpoint.address, "cores": 2, "lost_after": "3 seconds"}
    return {"far": ConnectNode.model_validate(far), "here": EMBEDDED}


def wait_until(running: Towpath, state: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while running.engine.controller.node_state("far") != state:
        assert time.monotonic() < end, f"the node is not {state} after {PATIENCE_S} s"
        running.poll()
        time.sleep(0.1)


def kinds(folder: Path) -> list[EventKind]:
    journal = Journal(folder / "store" / "journal.sqlite", read_only=True)
    return [entry.kind for entry in journal.history()]


def test_a_node_that_was_paused_does_not_write_again(endpoint: Server, tmp_path: Path) -> None:
    def disturb(running: Towpath, phase: int) -> None:
        if phase == 1:
            os.kill(endpoint.pid, signal.SIGSTOP)
            wait_until(running, "lost")
        if phase == 2:
            os.kill(endpoint.pid, signal.SIGCONT)
            wait_until(running, "open")

    outcome = run(plain_workload(4), tmp_path, nodes(endpoint), disturb)
    assert not outcome.differences
    assert outcome.rows
    assert {EventKind.NODE_LOST, EventKind.CARRIER_RESTARTED, EventKind.NODE_JOINED} <= set(kinds(tmp_path))


def test_a_node_with_copies_of_all_queries_is_killed(endpoint: Server, tmp_path: Path) -> None:
    def disturb(running: Towpath, phase: int) -> None:
        if phase == 1:
            os.kill(endpoint.pid, signal.SIGKILL)

    outcome = run(plain_workload(4), tmp_path, nodes(endpoint), disturb, copies=2)
    assert not outcome.differences
    assert outcome.rows
    assert {EventKind.NODE_LOST, EventKind.CARRIER_RESTARTED} <= set(kinds(tmp_path))
