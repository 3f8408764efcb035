"""Writer, compaction and readers at the same time, as in a running job."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from towpath.results import Position, compact, follow, read

from .logs import Row, part, values, write_batch

BATCHES = 120


def test_readers_see_every_batch_once_while_others_are_at_work(tmp_path: Path) -> None:
    done = threading.Event()
    parts = [part(tmp_path, 1)]

    def write() -> None:
        try:
            for number in range(BATCHES):
                write_batch(tmp_path, number, [Row(1, number, number)])
        finally:
            done.set()

    def merge() -> None:
        while not done.is_set():
            compact(tmp_path, min_batches=3, target_rows=40)

    def look() -> list[list[int]]:
        return list(iter(lambda: None if done.is_set() else values(read(parts)), None))

    def last_look() -> Iterator[bool]:
        yield from iter(lambda: not done.is_set(), False)
        yield True
        yield False

    waits = last_look()
    with ThreadPoolExecutor() as pool:
        jobs = [pool.submit(write), pool.submit(merge)]
        looking = pool.submit(look)
        followed = [v for chunk in follow(lambda: parts, Position(), lambda: next(waits)) for v in values(chunk.table)]
    for job in jobs:
        job.result()
    assert followed == list(range(BATCHES))
    assert all(seen == list(range(len(seen))) for seen in looking.result())
