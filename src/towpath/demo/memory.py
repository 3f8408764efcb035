"""How much memory and CPU time this process and all that it started take."""

from __future__ import annotations

import os
from pathlib import Path


def resident_bytes() -> int:
    """Resident size of this process and its descendants; pages that several of them share count once."""
    return sum(map(_proportional, _family(os.getpid())))


def cpu_seconds() -> float:
    """CPU time of this process and its descendants, ended ones included where their parent has noticed."""
    tick = os.sysconf("SC_CLK_TCK")
    return sum(sum(map(int, fields[11:15])) for pid in _family(os.getpid()) if (fields := _stat(pid))) / tick


def _family(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))):
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [root]
    for pid in found:  # grows while it is read
        found += children.get(pid, [])
    return found


def _stat(pid: int) -> list[str]:
    """From the third field on, the state; the second may contain anything, also parentheses. Nothing once it ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return []
    return text[text.rindex(")") + 2 :].split()


def _proportional(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
