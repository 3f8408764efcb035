"""Reads the problem file that a command was given."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from towpath.cli.output import working

if TYPE_CHECKING:
    from towpath.placement.problem import Problem


def load_problem(path: Path, seed: int | None) -> Problem:
    from towpath import problems

    with working(f"reading {path}"):
        return problems.load(path, seed)
