"""Arrow as Polars has it."""

from __future__ import annotations

import polars as pl
import pyarrow as pa

DataFrame = pl.DataFrame


def to_polars(table: pa.Table) -> DataFrame:
    found = pl.from_arrow(table)
    assert isinstance(found, DataFrame), "a table has columns"
    return found
