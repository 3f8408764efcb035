"""The types of the language in Arrow."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from towpath.schema import Type

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
