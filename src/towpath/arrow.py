"""The types of the language in Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from towpath.schema import COMPUTED_DIGITS, Column, Type

ARROW: dict[Type, pa.DataType] = {
    Type.BOOLEAN: pa.bool_(),
    Type.INT: pa.int32(),
    Type.BIGINT: pa.int64(),
    Type.DOUBLE: pa.float64(),
    Type.STRING: pa.string(),
    Type.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    Type.DATE: pa.date32(),
}


def arrow_schema(columns: Mapping[str, Type]) -> pa.Schema:
    return pa.schema([pa.field(name, ARROW[type_], nullable=True) for name, type_ in columns.items()])


def result_schema(columns: Iterable[Column]) -> pa.Schema:
    """Results as people have them."""
    return pa.schema([(c.name, ARROW[c.type] if c.decimal is None else decimal_type(c.decimal.scale)) for c in columns])


def decimal_type(scale: int) -> pa.DataType:
    return pa.decimal128(COMPUTED_DIGITS, scale)


def as_decimals(table: pa.Table, scales: Sequence[int | None]) -> pa.Table:
    """The table with decimals instead of units, where a column has a scale."""
    for n, scale in enumerate(scales):
        if scale is not None:
            units = table.column(n).cast(decimal_type(0))
            chunks = [
                pa.Array.from_buffers(decimal_type(scale), len(c), c.buffers(), c.null_count, c.offset)
                for c in units.chunks
            ]
            table = table.set_column(n, table.column_names[n], pa.chunked_array(chunks, decimal_type(scale)))
    return table
