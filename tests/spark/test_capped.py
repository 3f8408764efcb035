"""Processes held to a share of a core."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from towpath.spark import capped as module
from towpath.spark import processes
from towpath.spark.capped import capped, cpu_seconds

TWO_BUSY_PROCESSES = "import os\nos.fork()\nwhile True: pass"


@pytest.fixture
def busy() -> Iterator[int]:
    process = subprocess.Popen([sys.executable, "-c", TWO_BUSY_PROCESSES], start_new_session=True)
    yield process.pid
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def test_all_processes_of_a_session_share_what_it_may_use(busy: int) -> None:
    share = 0.25
    with capped({busy: share}):
        time.sleep(0.5)  # whatever it used before it was capped
        begun, before = time.monotonic(), cpu_seconds(busy)
        time.sleep(2.0)
        used = (cpu_seconds(busy) - before) / (time.monotonic() - begun)
    assert 0 < used <= 1.2 * share


def test_what_was_capped_goes_on_afterwards(busy: int) -> None:
    with capped({busy: 0.05}):
        time.sleep(0.5)
    before = cpu_seconds(busy)
    deadline = time.monotonic() + 30
    while cpu_seconds(busy) < before + 0.1:
        assert time.monotonic() < deadline, "it is still stopped"
        time.sleep(0.05)


def test_a_process_that_has_ended_is_no_problem() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""], start_new_session=True)
    process.wait()
    with capped({process.pid: 0.5}):
        time.sleep(0.1)
    assert cpu_seconds(process.pid) == 0.0


class Machine:
    """One process that is busy whenever it is not stopped, and its clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
        self.now = self.used = 0.0
        self.threads = threads
        self.stopped = False
        monkeypatch.setattr(module, "_members", lambda leader: [leader])
        monkeypatch.setattr(processes, "cpu_seconds", lambda pid: self.used)
        monkeypatch.setattr(module.os, "kill", lambda pid, number: self.signal(number))

    def signal(self, number: int) -> None:
        self.stopped = number == signal.SIGSTOP

    def run(self, cap: module._Cap, seconds: float, *, busy: bool = True) -> float:
        """Returns the CPU time that it used."""
        before, end = self.used, self.now + seconds
        while self.now < end:
            self.now += module.LOOK_S
            if busy and not self.stopped:
                self.used += self.threads * module.LOOK_S
            cap.look(self.now)
        return self.used - before


@pytest.mark.parametrize("share", [0.1, 0.5, 1.0, 1.5])
def test_who_is_always_busy_gets_the_share(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, threads=2)
    assert machine.run(module._Cap(1, share), 60.0) / 60.0 == pytest.approx(share, rel=0.02)


def test_who_was_idle_may_not_make_up_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, threads=2)
    cap = module._Cap(1, 0.5)
    machine.run(cap, 60.0, busy=False)
    assert machine.run(cap, 2.0) <= 0.5 * 2.0 + module.BURST_S + 2 * module.LOOK_S
