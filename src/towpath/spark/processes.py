"""What the kernel says about processes."""

from __future__ import annotations

import os
from pathlib import Path

TICK_S = 1 / os.sysconf("SC_CLK_TCK")

# Places in /proc/<pid>/stat, counted from its third field on.
STATE, PARENT, SESSION, BORN = 0, 1, 3, 19
OWN_TIMES = slice(11, 13)  # user and system
CPU_TIMES = slice(11, 15)  # the same, and that of its children that have ended


def all_processes() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]


def stat(pid: int) -> list[str]:
    """From the third field on; the second may contain anything, also parentheses. Nothing once it has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return []
    return text[text.rindex(")") + 2 :].split()


def cpu_seconds(pid: int) -> float:
    """Its own time and that of its children that have ended."""
    return sum(map(int, stat(pid)[CPU_TIMES])) * TICK_S


def own_ticks(pid: int) -> int:
    """Of the CPU time that it has taken itself."""
    return sum(map(int, stat(pid)[OWN_TIMES]))
