"""One HTML page with the reports of many experiments: tables and plots inside, nothing to load."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from towpath.lab.reproduce.draw import svg
from towpath.lab.reproduce.report import Cell, ExperimentReport, Scale, Statement, Table

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
table { border-collapse: collapse; margin: 1rem 0 }
caption { text-align: left; font-weight: 600 }
th, td { border-bottom: 1px solid #ddd; padding: .25rem .75rem; text-align: left; vertical-align: top }
td.number { text-align: right; font-variant-numeric: tabular-nums }
.holds { color: #17692c } .fails { color: #a11 } svg { max-width: 100%; height: auto }
"""


@dataclass(frozen=True)
class ExperimentRun:
    experiment: str
    about: str
    scale: Scale
    seeds: int
    seconds: float
    report: ExperimentReport


def page(runs: Sequence[ExperimentRun]) -> str:
    body = "\n".join([_overview(runs), *(_section(run) for run in runs)])
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>Published experiments, run again</title>'
        f"<style>{STYLE}</style></head>\n<body>\n<h1>Published experiments, run again</h1>\n{body}\n</body></html>\n"
    )


def number(cell: Cell) -> str:
    """A figure as people read it: four digits, and thousands apart."""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, int) or abs(cell) >= 1000:
        return f"{cell:,.0f}"
    return f"{cell:.4g}"


def verdict(statement: Statement) -> str:
    return {True: "holds", False: "does not hold", None: "undecided"}[statement.holds]


def statements_table(statements: Iterable[Statement]) -> Table:
    rows = tuple(
        (s.claim, s.paper, f"{number(s.ours)} ± {number(s.spread)}" if s.spread else number(s.ours), verdict(s))
        for s in statements
    )
    return Table("Statements", ("claim", "paper", "ours", ""), rows)


def notes(report: ExperimentReport) -> list[tuple[str, tuple[str, ...]]]:
    """Headings and sentences, without the headings that have nothing below them."""
    parts = [
        ("Smaller than in the paper", report.scaled_down),
        ("Assumed where the paper is silent", report.assumed),
        ("Why a statement does not hold, or is undecided", report.explained),
    ]
    return [(heading, sentences) for heading, sentences in parts if sentences]


def _overview(runs: Sequence[ExperimentRun]) -> str:
    rows = tuple(
        (
            run.experiment,
            run.about,
            f"{sum(s.holds is True for s in run.report.statements)} of {len(run.report.statements)}",
            run.seeds,
            f"{run.seconds:.0f} s",
        )
        for run in runs
    )
    return _table(Table("Experiments", ("name", "about", "statements that hold", "seeds", "took"), rows))


def _section(run: ExperimentRun) -> str:
    parts = [f'<h2 id="{escape(run.experiment)}">{escape(run.experiment)}</h2>', f"<p>{escape(run.about)}</p>"]
    parts.append(f"<p>Scale: {run.scale}; seeds: {run.seeds}.</p>")
    parts.append(_table(statements_table(run.report.statements)))
    parts += [svg(plot) for plot in run.report.plots]
    parts += [_table(table) for table in run.report.tables]
    for heading, sentences in notes(run.report):
        items = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
        parts.append(f"<h3>{heading}</h3>\n<ul>{items}</ul>")
    return "\n".join(parts)


def _table(table: Table) -> str:
    head = "".join(f"<th>{escape(column)}</th>" for column in table.columns)
    body = "\n".join(f"<tr>{''.join(_cell(cell) for cell in row)}</tr>" for row in table.rows)
    return f"<table><caption>{escape(table.title)}</caption>\n<tr>{head}</tr>\n{body}\n</table>"


def _cell(cell: Cell) -> str:
    css = {"holds": "holds", "does not hold": "fails"}.get(str(cell), "" if isinstance(cell, str) else "number")
    return f'<td class="{css}">{escape(number(cell))}</td>'
