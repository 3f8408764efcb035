"""Writes a micro-batch to the results log as one directory, once.

A repeated one that is there is only calculated, for its state. Called by Spark's side of an endpoint, too.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from towpath.results.log import SUCCESS
from towpath.spark.universal_worker import FILE

Write = Callable[[DataFrame, int], None]


def by_spark(root: Path, banned: Sequence[int]) -> Write:
    """Without the rows of fragments that are banned.

    Here and not in the carrier's plan, where Spark would move such a condition below the aggregate: what is in the
    state already would come all the same.
    """

    def write(rows: DataFrame, batch: int) -> None:
        target = root / f"batch={batch}"
        if banned:
            rows = rows.where(~rows["_fragment"].isin(list(banned)))
        if (target / SUCCESS).exists():
            rows.write.format("noop").mode("overwrite").save()
        else:
            rows.write.mode("overwrite").parquet(str(target))

    return write


def by_workers(root: Path, written: Path) -> Write:
    """Of files that workers have put into `written`: those of the tasks that count, and nothing of any other."""

    def write(files: DataFrame, batch: int) -> None:
        from towpath.vector.evaluate import RESULTS

        target = root / f"batch={batch}"
        made = [row[FILE] for row in files.collect()]
        if not (target / SUCCESS).exists():
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir(parents=True)
            for n, path in enumerate(made):
                os.rename(path, target / f"part-{n:05}.parquet")
            if not made:
                pq.write_table(RESULTS.empty_table(), target / "part-00000.parquet")
            (target / SUCCESS).touch()
        shutil.rmtree(written, ignore_errors=True)

    return write
