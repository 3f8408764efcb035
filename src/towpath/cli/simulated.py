"""What came of a simulation, as text, as JSON and as plots."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd
from rich.console import RenderableType
from rich.table import Column, Table

from towpath.lab.reproduce.report import Lines, Series
from towpath.lab.sim import SimulationOutcome

MOST_NODES, MOST_QUERIES, MOST_ACTORS, MOST_LINES = 20, 10, 8, 8


def summary(outcome: SimulationOutcome) -> dict[str, Any]:
    """What fits a few lines. Means are over the windows."""
    windows, moves = outcome.windows, outcome.moves
    done = moves[moves["failed"] == ""]
    return {
        "seconds": outcome.seconds,
        "seed": outcome.seed,
        "results": int(windows["results"].sum()),
        "results_per_second": float(windows["results"].sum() / outcome.seconds),
        "pr_max": _known(windows["pr_max"].mean()),
        "load_mean": float(windows["load_mean"].mean()),
        "load_stdev": float(windows["load_stdev"].mean()),
        "bytes": float(windows["bytes"].sum()),
        "result_bytes": float(windows["result_bytes"].sum()),
        "state_bytes": float(windows["state_bytes"].sum()),
        "messages": int(windows["messages"].sum()),
        "message_bytes": int(windows["message_bytes"].sum()),
        "moves": len(done),
        "move_seconds": _known(done["seconds"].mean()),
        "moves_failed": len(moves) - len(done),
        "lost": outcome.lost,
    }


def views(outcome: SimulationOutcome) -> list[RenderableType]:
    return [_nodes(outcome), _queries(outcome), *_actors(outcome), *_failures(outcome), _sums(outcome)]


def _nodes(outcome: SimulationOutcome) -> Table:
    table = Table("node", *(Column(name, justify="right") for name in ("load", "queued", "MB/s in", "MB/s out")))
    nodes = outcome.nodes.groupby("node", sort=False).mean(numeric_only=True)
    for name, row in nodes.head(MOST_NODES).iterrows():
        sizes = (f"{row[side] / 1e6:.3f}" for side in ("bytes_in", "bytes_out"))
        table.add_row(str(name), f"{row['load']:.3f}", f"{row['queued']:,.1f}", *sizes)
    if len(nodes) > MOST_NODES:
        table.caption = f"{len(nodes) - MOST_NODES:,} more nodes"
    return table


def _queries(outcome: SimulationOutcome) -> Table:
    """The worst first; a query's ratio is that of its worst stream."""
    table = Table("query", "worst stream", *(Column(name, justify="right") for name in ("PR", "delay ms", "max ms")))
    paths = outcome.paths.sort_values("pr", ascending=False, kind="stable").drop_duplicates("query")
    for row in paths.head(MOST_QUERIES).itertuples():
        delays = (f"{1000 * value:,.2f}" for value in (row.delay, row.delay_max))
        table.add_row(row.query, row.stream, f"{row.pr:,.2f}", *delays)
    if len(paths) > MOST_QUERIES:
        table.caption = f"{len(paths) - MOST_QUERIES:,} better queries"
    return table


def _actors(outcome: SimulationOutcome) -> list[Table]:
    """Those who decide, the one with most to read first: what deciding costs each of them."""
    if outcome.actors.empty:
        return []
    heads = ("messages in", "kB in", "messages out", "kB out")
    table = Table("actor", *(Column(name, justify="right") for name in heads))
    actors = outcome.actors.sort_values("received_bytes", ascending=False, kind="stable")
    for row in actors.head(MOST_ACTORS).itertuples():
        kilobytes = (f"{size / 1e3:,.1f}" for size in (row.received_bytes, row.sent_bytes))
        table.add_row(row.actor, f"{row.received:,}", next(kilobytes), f"{row.sent:,}", next(kilobytes))
    if len(actors) > MOST_ACTORS:
        table.caption = f"{len(actors) - MOST_ACTORS:,} actors with less to read"
    return [table]


def _failures(outcome: SimulationOutcome) -> list[str]:
    reasons = outcome.moves[outcome.moves["failed"] != ""]["failed"].value_counts()
    return [f"{count:,} moves failed: {reason}" for reason, count in reasons.items()]


def _sums(outcome: SimulationOutcome) -> str:
    sums = summary(outcome)
    lost = ", ".join(f"{count:,} {where.replace('_', ' ')}" for where, count in outcome.lost.items() if count)
    ratio = "-" if sums["pr_max"] is None else f"{sums['pr_max']:,.2f}"
    return "\n".join(
        [
            f"{outcome.seconds:g} simulated seconds: {sums['results']:,} results, {sums['results_per_second']:,.1f}/s",
            f"PRmax {ratio}, load {sums['load_mean']:.3f} ± {sums['load_stdev']:.3f} (means of the windows)",
            f"sent between nodes: tuples {sums['bytes'] / 1e6:,.2f} MB, state {sums['state_bytes'] / 1e6:,.2f} MB, "
            f"results to sinks {sums['result_bytes'] / 1e6:,.2f} MB, {sums['messages']:,} messages",
            f"moves: {sums['moves']:,} done, {sums['moves_failed']:,} failed; lost: {lost or 'nothing'}",
        ]
    )


def plots(outcome: SimulationOutcome) -> Mapping[str, Lines]:
    return {
        "load": _lines("Load of the nodes", "share of the time busy", outcome.nodes, "node", "load", log=False),
        "pr": _lines("Performance ratio of the queries", "PR = delay / work", outcome.queries, "query", "pr", log=True),
    }


def _lines(title: str, label: str, rows: pd.DataFrame, key: str, value: str, log: bool) -> Lines:
    """The largest and the mean of all, and, if they are few, each."""
    table = rows.pivot(index="at", columns=key, values=value)
    drawn = {"largest": table.max(axis=1), "mean": table.mean(axis=1)}
    if table.shape[1] <= MOST_LINES:
        drawn = {str(name): table[name] for name in dict.fromkeys(rows[key])}
    series = tuple(Series(name, tuple(line.dropna()), tuple(line.dropna().index)) for name, line in drawn.items())
    return Lines(title, "simulated seconds", label, series, log_y=log)


def _known(value: float) -> float | None:
    """JSON has no NaN."""
    return None if math.isnan(value) else float(value)
