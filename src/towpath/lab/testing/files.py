"""Files as careful producers write them, in every format a stream can have, and what DuckDB reads in them."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from towpath.schema import Stream, Type
from towpath.store import durable

FORMATS = ("parquet", "csv", "json")
DUCKDB = {
    Type.BOOLEAN: "BOOLEAN",
    Type.INT: "INTEGER",
    Type.BIGINT: "BIGINT",
    Type.DOUBLE: "DOUBLE",
    Type.STRING: "VARCHAR",
    Type.TIMESTAMP: "TIMESTAMP",  # in UTC, wherever this runs
    Type.DATE: "DATE",
}


def write_file(table: pa.Table, path: Path) -> None:
    """In the format that the name ends with; it appears in one step."""
    with durable.writing(path, lasting=False) as scratch:
        match path.suffix:
            case ".parquet":
                pq.write_table(table, scratch)
            case ".csv":
                pyarrow.csv.write_csv(table, scratch)
            case ".json":
                lines = (json.dumps({name: _plain(value) for name, value in row.items()}) for row in table.to_pylist())
                scratch.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def read_files(con: duckdb.DuckDBPyConnection, paths: Sequence[Path], stream: Stream) -> duckdb.DuckDBPyRelation:
    """What DuckDB makes of the files, by the types of the stream."""
    columns = {column.name: DUCKDB[column.type] for column in stream.columns}
    names = [str(path) for path in paths]
    match paths[0].suffix:
        case ".csv":
            return con.sql("SELECT * FROM read_csv($1, header = true, columns = $2)", params=[names, columns])
        case ".json":
            text = "SELECT * FROM read_json($1, format = 'newline_delimited', columns = $2)"
            return con.sql(text, params=[names, columns])
    return con.sql("SELECT * FROM read_parquet($1)", params=[names])


def _plain(value: Any) -> Any:
    if isinstance(value, datetime | date):
        return value.isoformat()
    # JSON has no such numbers; as texts they are read as what they are called.
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
