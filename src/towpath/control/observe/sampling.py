"""How many rows fragments emit, counted in a few of the newest micro-batches of a results log.

The log is read as anybody else reads it: nothing is counted on the way of the data.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from towpath.results.log import segments

SAMPLED = 4  # micro-batches at a time


def emitted(root: Path, after: int, until: int) -> dict[int, dict[int, int]]:
    """Rows by micro-batch and fragment, of the newest in (after, until] that are in the log on their own."""
    fresh = [segment for segment in segments(root) if segment.raw and after < segment.first <= until]
    return {segment.first: _counts(segment.files) for segment in fresh[-SAMPLED:]}


def _counts(files: Iterable[Path]) -> dict[int, int]:
    try:
        tables = [pq.read_table(file, columns=["_fragment"], partitioning=None) for file in files]
    except FileNotFoundError:  # merged into another file a moment ago
        return {}
    if not tables:
        return {}
    counted = pc.value_counts(pa.concat_tables(tables)["_fragment"])
    return {entry["values"]: entry["counts"] for entry in counted.to_pylist()}
