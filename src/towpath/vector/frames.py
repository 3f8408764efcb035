"""Arrow as Polars has it."""

from __future__ import annotations

import polars as pl
import pyarrow as pa


def to_polars(table: pa.Table) -> pl.DataFrame:
    found = pl.from_arrow(table)
    assert isinstance(found, pl.DataFrame), "a table has columns"
    return found
