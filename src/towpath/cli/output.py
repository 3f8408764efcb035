"""Where output goes: what was asked for to stdout, everything said about it to stderr."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console, RenderableType
from rich.table import Table

from towpath.api.figures import CarrierFigures

if TYPE_CHECKING:
    from towpath.placement.problem import Problem

MESSAGES = Console(stderr=True, highlight=False, markup=False)
WIDEST = 1_000_000  # of a line in a pipe: nothing is broken
PATIENCE_S = 2.0  # what takes longer says so

_ASKED, _ANSWERED = "towpath.json_asked", "towpath.json_answered"


def _note_json(ctx: click.Context, _: click.Parameter, as_json: bool) -> bool:
    ctx.meta[_ASKED] = as_json
    return as_json


# Eager: it is known before the other options are looked at, so that what is wrong with those is reported in JSON, too.
json_option = click.option(
    "--json", "as_json", is_flag=True, is_eager=True, callback=_note_json, help="Answer in JSON, for programs."
)


def json_chosen(format_: str, as_json: bool) -> str:
    """Of commands that have --format, too."""
    return "json" if as_json else format_


CARRIER_FIGURES = ("queries", "fragments", "rows/s", "trigger", "event time", "late rows")
LATE_STREAMS = 5  # that are named when rows come late


def event_time(us: int | None) -> str:
    from towpath.config.settings import moment_text

    return "-" if us is None else moment_text(us)


def exact_time(us: int) -> str:
    """An event time that something depends on: with its fraction, if it has one."""
    from towpath.config.settings import moment_text

    return moment_text(us, "auto")


def clock_time(us: int) -> str:
    """A moment of the wall clock, as the user's watch shows it."""
    return f"{datetime.fromtimestamp(us / 1e6).astimezone():%Y-%m-%d %H:%M:%S}"


def counted(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def late_text(late: int, by_stream: Mapping[str, int], unheard: int) -> str:
    """How many rows came too late for joins and aggregates, and of which streams."""
    most = sorted(by_stream, key=lambda name: (-by_stream[name], name))[:LATE_STREAMS]
    of = ", ".join(f"{name} {by_stream[name]:,}" for name in most)
    more = f" and {len(by_stream) - len(most):,} more streams" if len(by_stream) > len(most) else ""
    missed = f"; the reports of {counted(unheard, 'micro-batch', 'micro-batches')} were missed" if unheard else ""
    details = f" ({of}{more}{missed})" if of or missed else ""
    return f"{'at least ' if unheard else ''}{late:,} late rows{details.replace('(; ', '(')}"


def seconds_text(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.2f} s"


def carrier_figures(carrier: CarrierFigures) -> list[str]:
    """In the order of CARRIER_FIGURES."""
    return [
        f"{carrier.queries:,}",
        f"{carrier.fragments:,}",
        f"{carrier.rows_per_s:,.0f}",
        seconds_text(carrier.trigger_s),
        event_time(carrier.event_us),
        f"{carrier.late:,}",
    ]


def owes_json(ctx: click.Context) -> bool:
    """Whether JSON was asked for and none was given yet: a program reads one answer from stdout."""
    return bool(ctx.meta.get(_ASKED)) and not ctx.meta.get(_ANSWERED)


def print_json(value: Any) -> None:
    ctx = click.get_current_context(silent=True)
    if ctx is not None:
        ctx.meta[_ANSWERED] = True
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_data(*parts: RenderableType) -> None:
    """Prints text and tables to stdout. Into a pipe or a file, a table takes the width it needs, and has no lines."""
    console = Console(highlight=False, markup=False)
    for part in parts:
        if console.is_terminal:
            console.print(part)
        else:
            click.echo(_plain(part))


def _plain(part: RenderableType) -> str:
    """Columns with at least two blanks between them, and nothing behind the last."""
    if isinstance(part, Table):
        part.box, part.pad_edge = None, False
    console = Console(highlight=False, markup=False, width=WIDEST)
    with console.capture() as captured:
        console.print(part)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


@contextmanager
def working(text: str) -> Iterator[Callable[[str], None]]:
    """Says what is going on when it takes longer than PATIENCE_S; gives a function that changes the text.

    A spinner on a terminal, one line elsewhere.
    """
    status = MESSAGES.status(text)
    begin = status.start if MESSAGES.is_terminal else lambda: MESSAGES.print(status.status, "...")
    timer = threading.Timer(PATIENCE_S, begin)
    timer.daemon = True
    timer.start()
    try:
        yield status.update
    finally:
        timer.cancel()
        timer.join()  # else it might start the spinner after its end
        status.stop()


def load_problem(path: Path, seed: int | None) -> Problem:
    from towpath import problems

    with working(f"reading {path}"):
        return problems.load(path, seed)
