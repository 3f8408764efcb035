"""Streams that are silent while others go on, with `idle_after` on: nobody waits for ever, and nothing is late.

When a stream is found silent depends on the moment. So the streams take turns: in each phase one of them has rows, and
those are behind what came before by no more than its delay. They are in time whether others were waited for or not.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from random import Random

import pyarrow as pa

from towpath.api.running import Towpath
from towpath.lab.testing.batch import Batch
from towpath.lab.testing.recording import Recording
from towpath.lab.testing.workload import Workload
from towpath.lang import parse
from towpath.verify import Difference, differences

IDLE_AFTER_MS = (200, 1000)
PATIENCE_S = 120
LOOK_S = 0.1


def in_turns(rng: Random, recording: Recording) -> Recording:
    """Of each phase the rows of one stream, as far as they are not behind all that came before."""
    chunks: list[dict[str, pa.Table]] = []
    newest: int | None = None
    speaks = ""
    for phase, chunk in enumerate(recording.chunks):
        able = sorted(name for name, table in chunk.items() if table.num_rows) or sorted(chunk)
        speaks = rng.choice([name for name in able if name != speaks] or able)
        times = recording.times(phase, speaks)
        oldest = None if newest is None else newest - recording.catalog[speaks].delay_us
        said = chunk[speaks].filter(pa.array([oldest is None or time >= oldest for time in times], pa.bool_()))
        chunks.append({name: said if name == speaks else table.slice(0, 0) for name, table in chunk.items()})
        newest = max([*times, *([] if newest is None else [newest])], default=None)
    return replace(recording, chunks=tuple(chunks), idle_after_ms=rng.choice(IDLE_AFTER_MS))


def held_back(running: Towpath, workload: Workload) -> dict[str, Difference]:
    """What filters and joins still owe when everybody has been silent for long enough; they wait for no window."""
    batch, catalog = Batch(workload), workload.recording.catalog
    owed: Mapping[str, pa.Table] = {
        name: batch.complete(query.sql, query.begins.us)
        for name, query in workload.queries.items()
        if query.submit == 0
        and query.goes_on
        and all(select.window is None for select in parse(query.sql, catalog).everything)
    }
    end = time.monotonic() + PATIENCE_S
    while True:
        found = {name: differences(table, running.results(name)) for name, table in owed.items()}
        wrong = {name: difference for name, difference in found.items() if difference is not None}
        if not wrong or time.monotonic() > end:
            return wrong
        running.poll()
        time.sleep(LOOK_S)
