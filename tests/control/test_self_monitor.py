"""Pauses, clock steps and a full disk are noticed, and reported in words."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from towpath.control.act.self_monitor import EVERY_S, Moment, Observation, SelfMonitor, Vitals
from towpath.control.state.history import EventKind

DISK = 1 << 40
BEGIN = Moment(100.0, 5000.0, DISK // 2, DISK)


def after(seconds: float = EVERY_S, *, clock_s: float = 0.0, free: int = DISK // 2, disk: int = DISK) -> Moment:
    return Moment(BEGIN.monotonic_s + seconds, BEGIN.wall_s + seconds + clock_s, free, disk)


def kinds(found: list[Observation]) -> list[EventKind]:
    return [noticed.kind for noticed in found]


def test_an_ordinary_moment_is_not_worth_a_word() -> None:
    assert Vitals(BEGIN).look(after(clock_s=0.2)) == []


def test_a_machine_that_is_busy_for_a_second_is_ordinary() -> None:
    assert Vitals(BEGIN).look(after(1.5)) == []


def test_standing_still() -> None:
    (noticed,) = Vitals(BEGIN).look(after(5.2))
    assert noticed.kind is EventKind.CONTROLLER_PAUSED
    assert "stood still for 5.2 s" in noticed.text


@pytest.mark.parametrize(("seconds", "words"), [(60, "put forward by 60 s"), (-86_400, "put back by 86,400 s")])
def test_a_clock_that_is_changed(seconds: float, words: str) -> None:
    vitals = Vitals(BEGIN)
    (noticed,) = vitals.look(after(clock_s=seconds))
    assert noticed.kind is EventKind.CLOCK_CHANGED
    assert words in noticed.text
    assert vitals.look(after(2 * EVERY_S, clock_s=seconds)) == []


def test_both_at_once() -> None:
    assert kinds(Vitals(BEGIN).look(after(10, clock_s=60))) == [EventKind.CONTROLLER_PAUSED, EventKind.CLOCK_CHANGED]


def test_a_full_disk_is_logged_at_once_and_recorded_when_there_is_room(caplog: pytest.LogCaptureFixture) -> None:
    vitals = Vitals(BEGIN)
    assert vitals.look(after(0.5, free=1_500_000)) == []
    assert vitals.look(after(1.0, free=0)) == []
    assert caplog.text.count("is full: 1.5 MB are free") == 1
    (noticed,) = vitals.look(after(3.0))
    assert noticed.kind is EventKind.DISK_FULL
    assert "was full for 2.5 s" in noticed.text


def test_a_small_disk_is_not_full_before_its_end() -> None:
    small = 64 << 20
    vitals = Vitals(BEGIN)
    vitals.look(after(0.5, free=small // 10, disk=small))
    assert vitals.full_since_s is None
    vitals.look(after(1.0, free=small // 100, disk=small))
    assert vitals.full_since_s is not None


PAUSED = """
import sys, time
from pathlib import Path
from towpath.control.act.self_monitor import SelfMonitor
with SelfMonitor(Path(".")) as monitor:
    print("ready", flush=True)
    sys.stdin.readline()
    for kind, text in monitor.news():
        print(text)
"""


def test_a_real_process_that_is_paused(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PAUSED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=tmp_path
    )
    assert process.stdout is not None and process.stdin is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(2 * EVERY_S)
    os.kill(process.pid, signal.SIGSTOP)
    time.sleep(3)
    os.kill(process.pid, signal.SIGCONT)
    time.sleep(4 * EVERY_S)
    said, _ = process.communicate("\n")
    assert "the controller stood still for" in said


def test_the_thread_ends_with_it(tmp_path: Path) -> None:
    with SelfMonitor(tmp_path) as monitor:
        assert monitor.news() == []
    assert not monitor._thread.is_alive()
