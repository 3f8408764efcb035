from __future__ import annotations

import subprocess
import sys
import time

from towpath.lab.bench.quiet import QUIET, Company, QuietWatch, Ticks, watched
from towpath.spark.processes import TICK_S


def test_what_others_take_is_what_is_busy_and_not_ours() -> None:
    watch = QuietWatch()
    first = watch._last
    ours = {**first.ours, 1_000_001: 25}  # a process that was not there before
    watch.add(Ticks(first.at + 10.0, first.busy + 525, first.stolen + 100, ours))
    found = watch.company()
    assert abs(found.others - 500 * TICK_S / 10) < 1e-9
    assert abs(found.stolen - 100 * TICK_S / 10) < 1e-9


def test_what_is_not_quiet_is_said() -> None:
    assert "quiet" in str(Company(QUIET, 0.0)) and "not" not in str(Company(QUIET, 0.0))
    assert "other processes took 0.30 cores" in str(Company(0.3, 0.0))
    assert not Company(0.0, 0.3).quiet


def test_own_children_are_no_company() -> None:
    with watched() as watch:
        spinning = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        time.sleep(2.5)
        spinning.kill()
        spinning.wait()
        ours = sum(watch._last.ours.values())
    assert ours * TICK_S > 0.1, "it has been seen"
