"""`towpath reproduce`: the papers' experiments, run again."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.table import Table as RichTable

from towpath.cli.output import MESSAGES, json_option, print_data
from towpath.extras import require

if TYPE_CHECKING:  # the simulator and the plots take a second to import, which `towpath --help` need not pay
    from towpath.lab.reproduce import Progress, Scale, Table
    from towpath.lab.reproduce.page import ExperimentRun

SEEDS: dict[Scale, int] = {"tiny": 1, "default": 3, "full": 5}


@click.command("reproduce", epilog="Example: towpath reproduce dcape-connections --out reports")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--list", "listed", is_flag=True, help="Show which experiments there are.")
@click.option("--all", "everything", is_flag=True, help="Run them all.")
@click.option("--seeds", type=click.IntRange(min=1), help="How many times, each with its own seed.  [default: 3, 5]")
@click.option("--full", is_flag=True, help="The paper's own size; can take hours.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Write plots and tables to this folder.")
@click.option("--report", type=click.Path(path_type=Path, file_okay=False), help="Write one page, index.html, there.")
@click.option(
    "--resume",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep there how far a run has come, and go on from it. [sqpr-fig4a]",
)
@json_option
def command(
    names: tuple[str, ...],
    listed: bool,
    everything: bool,
    seeds: int | None,
    full: bool,
    out: Path | None,
    report: Path | None,
    resume: Path | None,
    as_json: bool,
) -> None:
    """Run a paper's experiment again and print what it states beside what comes out.

    Every experiment ends with one line of JSON; with --json that line is all that is printed. The default scale takes
    up to five minutes for each. Most run in the simulator; those on Spark nodes start them on this machine, and want
    it for themselves.
    """
    require("lab", "towpath reproduce")
    from towpath.lab.reproduce import available, get, help_of
    from towpath.lab.reproduce.runs import kept_in

    kept_in.set(resume)
    if listed:
        _list({name: help_of(experiment) for name, experiment in available().items()}, as_json)
        return
    if everything == bool(names):
        raise click.UsageError("name an experiment, or use --all for all of them; --list shows which there are")
    for name in names:
        get(name)  # a wrong name is reported before hours of work
    scale: Scale = "full" if full else "default"
    done: list[ExperimentRun] = []
    for name in available() if everything else names:
        done.append(_run(name, scale, seeds or SEEDS[scale]))
        _print(done[-1], as_json)
        if out is not None:
            _write(done[-1], out / name)
        if report is not None:
            _write_page(done, report)  # after each, so that stopping loses nothing


def _list(helps: dict[str, str], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(helps))
        return
    table = RichTable("experiment", "about")
    for name, text in helps.items():
        table.add_row(name, text)
    print_data(table)


def _run(name: str, scale: Scale, seeds: int) -> ExperimentRun:
    from towpath.lab.reproduce import get, help_of
    from towpath.lab.reproduce.page import ExperimentRun

    experiment = get(name)
    begin = time.monotonic()
    with _progress(name) as progress:
        report = experiment(scale, range(seeds), progress)
    return ExperimentRun(name, help_of(experiment), scale, seeds, time.monotonic() - begin, report)


@contextmanager
def _progress(name: str) -> Iterator[Progress]:
    """A bar on a terminal, a line per step elsewhere."""
    columns = (TextColumn(name), BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Bar(*columns, console=MESSAGES, transient=True, disable=not MESSAGES.is_terminal) as bar:
        task = bar.add_task("starting", total=1.0)

        def report(text: str, done: float) -> None:
            bar.update(task, description=text, completed=done)
            if not MESSAGES.is_terminal:
                MESSAGES.print(f"{name}: {done:4.0%} {text}")

        yield report


def _print(run: ExperimentRun, as_json: bool) -> None:
    from towpath.lab.reproduce.page import notes, statements_table

    if not as_json:
        print_data(f"{run.experiment}: {run.about}", _rich(statements_table(run.report.statements)))
        print_data(*(_rich(table) for table in run.report.tables))
        for heading, sentences in notes(run.report):
            print_data(f"{heading}:", *(f"  - {sentence}" for sentence in sentences))
    click.echo(json.dumps(run.report.summary(run.experiment, run.scale, run.seeds, run.seconds)))


def _rich(table: Table) -> RichTable:
    from towpath.lab.reproduce.page import number

    shown = RichTable(title=table.title, title_justify="left")
    for n, column in enumerate(table.columns):
        words = all(isinstance(row[n], str) for row in table.rows)
        shown.add_column(column, justify="left" if words else "right")
    for row in table.rows:
        shown.add_row(*(number(cell) for cell in row))
    return shown


def _write(run: ExperimentRun, folder: Path) -> None:
    """The statements, the tables as CSV, the plots as SVG and PNG."""
    import pandas as pd

    from towpath.lab.reproduce.draw import save

    folder.mkdir(parents=True, exist_ok=True)
    summary = run.report.summary(run.experiment, run.scale, run.seeds, run.seconds)
    (folder / "statements.json").write_text(json.dumps(summary, indent=2), encoding="utf-8")
    for n, table in enumerate(run.report.tables, start=1):
        pd.DataFrame(list(table.rows), columns=list(table.columns)).to_csv(folder / f"table{n}.csv", index=False)
    for n, plot in enumerate(run.report.plots, start=1):
        save(plot, folder / f"plot{n}.svg")
        save(plot, folder / f"plot{n}.png")


def _write_page(runs: list[ExperimentRun], folder: Path) -> None:
    from towpath.lab.reproduce.page import page

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "index.html").write_text(page(runs), encoding="utf-8")
