"""One more query for a node that runs many: when is its first result there, and does anything restart?"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass

from towpath.errors import RuntimeFailure
from towpath.lab.bench.shared import SharedJob, SharedRequests, opened, wait_for_all
from towpath.lab.bench.steps import Pace, Say, observe
from towpath.lab.bench.workloads import KINDS
from towpath.runtime.carriers import BatchDone

# Matches about fifty rows of every second, so the first trigger that sees the query has a result for it.
SQL = "SELECT channel, price FROM trades WHERE channel = 7 AND price > 1.5"
PATIENCE_S = 60.0


@dataclass(frozen=True)
class LateSubmission:
    """How a late query fared."""

    running: int  # queries before it
    triggers: int  # of a carrier, that ended until its first result was visible
    seconds: float
    carriers_started: int


def submit_one(n: int, pace: Pace, rate: int, cores: int, say: Say) -> LateSubmission:
    with opened(SharedRequests(KINDS["alerts"], say), rate, cores) as shared:
        shared.grow_to(n)
        observe(shared, n, pace, say)
        return submit(shared, n, SQL, say)


def submit(shared: SharedJob, n: int, sql: str, say: Say) -> LateSubmission:
    """To a job that runs n queries."""
    running = shared.running
    wait_for_all(running.engine, PATIENCE_S)  # a first micro-batch after that is a restart
    say("submitting one more")
    before = {carrier.id for carrier in running.engine.carriers}
    begin = time.monotonic()
    running.submit("late", sql)
    triggers, restarts = Counter[str](), 0
    while time.monotonic() - begin < PATIENCE_S:
        time.sleep(0.05)
        done = [e for e in running.engine.poll() if isinstance(e, BatchDone)]
        triggers.update(e.carrier for e in done)
        restarts += sum(e.first for e in done if e.carrier in before)
        if done and running.results("late").num_rows:
            started = len({carrier.id for carrier in running.engine.carriers} - before) + restarts
            return LateSubmission(n, max(triggers.values()), time.monotonic() - begin, started)
    raise RuntimeFailure(f"a query submitted to {n:,} running ones had no result after {PATIENCE_S:.0f} s")
