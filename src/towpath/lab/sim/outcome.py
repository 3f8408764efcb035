"""What a simulation reports: what happened in each window, and the sums. docs/design/simulator.md names all columns."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pandas as pd

from towpath.placement.problem import Placement

TABLES = ("windows", "nodes", "links", "queries", "operators", "streams", "paths", "actors", "moves", "notes")


@dataclass(frozen=True, eq=False)
class SimulationOutcome:
    """Columns named `at` are the ends of windows; loads, delays and ratios are means over the window."""

    seconds: float
    seed: int
    windows: pd.DataFrame  # at, pr_max, load_mean, load_stdev, results, and the bytes and messages of each kind
    nodes: pd.DataFrame  # at, node, load, queued, memory, bytes_in, bytes_out
    links: pd.DataFrame  # at, source, target, bytes: those that carried any
    queries: pd.DataFrame  # at, query, pr, delay, results
    operators: pd.DataFrame  # operator, taken, given, work, state_bytes
    streams: pd.DataFrame  # stream, tuples
    paths: pd.DataFrame  # query, stream, tuples, pr, delay, delay_max, delivery
    actors: pd.DataFrame  # actor, sent, sent_bytes, received, received_bytes: messages, over the whole run
    moves: pd.DataFrame  # asked, ended, fragment, source, target, seconds, state_bytes, reason, failed
    notes: pd.DataFrame  # at, actor, text
    lost: dict[str, int]  # tuples: at_nodes, on_links, at_entry; results: to_sinks; messages: to_actors
    placement: Placement  # at the end
    executed: int  # tuples, summed over the operators that took them in

    def write(self, folder: Path, kind: Literal["parquet", "csv"] = "parquet") -> list[Path]:
        """A file for each table."""
        folder.mkdir(parents=True, exist_ok=True)
        return [write_table(getattr(self, name), folder / f"{name}.{kind}") for name in TABLES]


def write_table(table: pd.DataFrame, file: Path) -> Path:
    if file.suffix == ".parquet":
        table.to_parquet(file, index=False)
    else:
        table.to_csv(file, index=False)
    return file
