"""Holds processes to a share of a core, so that several nodes on few cores are as slow as several small machines.

As the kernel's own quotas (cpu.max of control groups) do, without needing the rights for them: whoever has used more
CPU time than its share allows is stopped (SIGSTOP) until its share has caught up, and then goes on (SIGCONT).
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from towpath.spark import processes

LOOK_S = 0.02
BURST_S = 0.05  # of CPU time: what a process that was idle may use at once
MEMBERS_S = 0.5  # how often new processes are looked for


@contextmanager
def capped(shares: Mapping[int, float]) -> Iterator[None]:
    """Within this, each session of processes (by its leader's id, as `server.start` makes them) has its share.

    What counts is the CPU time of all its processes together: two threads of a JVM at a share of 0.5 get a quarter of a
    core each.
    """
    caps = [_Cap(leader, share) for leader, share in shares.items()]
    done = threading.Event()
    thread = threading.Thread(target=_hold, args=(caps, done), name="capped", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def cpu_seconds(leader: int) -> float:
    """CPU time that the processes of a session have used so far, ended ones included."""
    return sum(map(processes.cpu_seconds, _members(leader)))


def _hold(caps: list[_Cap], done: threading.Event) -> None:
    try:
        while not done.wait(LOOK_S):
            now = time.monotonic()
            for cap in caps:
                cap.look(now)
    finally:
        for cap in caps:
            cap.release()


@dataclass
class _Cap:
    leader: int
    share: float
    balance_s: float = 0.0  # of CPU time; below zero it has to wait
    members: list[int] = field(default_factory=list)
    used_s: float | None = None  # at the last look
    looked_at: float = 0.0
    members_at: float = 0.0
    stopped: bool = False

    def look(self, now: float) -> None:
        if now >= self.members_at + MEMBERS_S:
            self.members = _members(self.leader)
            self.members_at = now
        used = sum(map(processes.cpu_seconds, self.members))
        if self.used_s is not None:
            earned = self.share * (now - self.looked_at)
            # A process that ended takes its time to its parent, maybe a look later: what is missing comes again.
            self.balance_s = min(BURST_S, self.balance_s + earned - (used - self.used_s))
        self.used_s, self.looked_at = used, now
        if self.balance_s < 0 and not self.stopped:
            self._signal(signal.SIGSTOP)
            self.stopped = True
        elif self.balance_s >= 0 and self.stopped:
            self.release()

    def release(self) -> None:
        self._signal(signal.SIGCONT)
        self.stopped = False

    def _signal(self, number: signal.Signals) -> None:
        for pid in self.members:
            with suppress(ProcessLookupError):
                os.kill(pid, number)


def _members(leader: int) -> list[int]:
    found = ((pid, processes.stat(pid)) for pid in processes.all_processes())
    return [pid for pid, fields in found if fields and int(fields[processes.SESSION]) == leader]
