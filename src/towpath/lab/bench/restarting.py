"""What one does without towpath: a streaming query is stopped on one endpoint and started on another.

It goes on from its checkpoint there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from towpath.errors import RuntimeFailure
from towpath.lab.bench import plain
from towpath.lab.bench.endpoints import node_at
from towpath.lab.bench.workloads import KINDS
from towpath.spark.connect import connect
from towpath.spark.modes import functions_of
from towpath.spark.server import Server

LOOK_S = 0.1
PATIENCE_S = 90.0


def restarts(
    folder: Path, data: Path, servers: Mapping[str, Server], times: int, trigger_ms: int, look: Callable[[], object]
) -> list[float]:
    """Seconds from every stop to the first results from the next endpoint; `look` is called meanwhile."""
    names = list(servers)
    found: list[float] = []
    stopped: float | None = None
    for n in range(times + 1):
        name = names[n % len(names)]
        session = connect(name, node_at(servers[name]), folder)
        before = _written(folder)
        with functions_of(session):
            rows = KINDS["windows"].by_hand(plain.read(session, data, plain.SETTINGS[0]), 0)
        query = plain.run(rows, folder, "q", trigger_ms)
        _until_more(folder, before, look)
        if stopped is not None:
            found.append(time.monotonic() - stopped)
        stopped = time.monotonic()
        query.stop()
    return found


def _until_more(folder: Path, before: int, look: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE_S
    while _written(folder) == before:
        if time.monotonic() > end:
            raise RuntimeFailure(f"a query by hand wrote nothing within {PATIENCE_S:.0f} s; the nodes are overloaded")
        look()
        time.sleep(LOOK_S)


def _written(folder: Path) -> int:
    """Commits of the Parquet sink: a file that none of them names does not count."""
    return len(list((folder / "out" / "q" / "_spark_metadata").glob("[0-9]*")))
