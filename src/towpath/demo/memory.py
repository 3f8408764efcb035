"""How much memory this process and all that it started take."""

from __future__ import annotations

import os
from pathlib import Path


def resident_bytes() -> int:
    """Resident size of this process and its descendants; pages that several of them share count once."""
    return sum(map(_proportional, _family(os.getpid())))


def _family(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (parent := _parent(entry)) is not None:
            children.setdefault(parent, []).append(int(entry.name))
    found = [root]
    for pid in found:  # grows while it is read
        found += children.get(pid, [])
    return found


def _parent(process: Path) -> int | None:
    try:
        text = (process / "stat").read_text()
    except OSError:  # it has ended
        return None
    return int(text[text.rindex(")") + 2 :].split()[1])


def _proportional(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
