"""Reads the problem file that a command was given."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from towpath import problems
from towpath.cli.failures import FAILED
from towpath.cli.output import print_json, working
from towpath.errors import ProblemsError
from towpath.placement.problem import Problem


def load_problem(path: Path, seed: int | None, as_json: bool) -> Problem:
    """The problem; its mistakes are raised, or answered in JSON where that was asked for."""
    try:
        with working(f"reading {path}"):
            return problems.load(path, seed)
    except ProblemsError as error:
        if not as_json:
            raise
        found = [dataclasses.asdict(problem) for problem in error.problems]
        print_json({"ok": False, "title": error.title, "problems": found})
        click.get_current_context().exit(FAILED)
