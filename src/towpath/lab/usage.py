"""How much memory and CPU time this process and all that it started take."""

from __future__ import annotations

import os
from pathlib import Path

from towpath.spark import processes


def resident_bytes() -> int:
    """Resident size of this process and its descendants; pages that several of them share count once."""
    return sum(map(_proportional, family(os.getpid())))


def cpu_seconds() -> float:
    """CPU time of this process and its descendants, ended ones included where their parent has noticed."""
    return sum(map(processes.cpu_seconds, family(os.getpid())))


def family(root: int) -> list[int]:
    """A process and its descendants."""
    children: dict[int, list[int]] = {}
    for pid in processes.all_processes():
        if fields := processes.stat(pid):
            children.setdefault(int(fields[processes.PARENT]), []).append(pid)
    found = [root]
    for pid in found:  # grows while it is read
        found += children.get(pid, [])
    return found


def _proportional(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
