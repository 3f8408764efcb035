"""Files as careful producers write them, in every format a stream can have, and what DuckDB reads in them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from functools import reduce
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
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


def fields_of(stream: Stream, format_: str) -> dict[str, list[str]]:
    """The fields that its columns come from, as a job file has them."""
    return {} if format_ == "csv" else {c.name: c.name.split(".") for c in stream.columns if "." in c.name}


def write_file(table: pa.Table, path: Path) -> None:
    """In the format that the name ends with; it appears in one step. Names with dots are fields of structs."""
    with durable.writing(path, lasting=False) as scratch:
        match path.suffix:
            case ".parquet":
                pq.write_table(_nested(table), scratch)
            case ".csv":
                pyarrow.csv.write_csv(table, scratch)
            case ".json":
                lines = (json.dumps(_plain(row)) for row in _nested(table).to_pylist())
                scratch.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def read_files(con: duckdb.DuckDBPyConnection, paths: Sequence[Path], stream: Stream) -> duckdb.DuckDBPyRelation:
    """What DuckDB makes of the files, by the types of the stream."""
    columns = {column.name: DUCKDB[column.type] for column in stream.columns}
    names = [str(path) for path in paths]
    fields = ", ".join(f"t.{_quoted(name.split('.'))} AS {_quoted([name])}" for name in columns)
    match paths[0].suffix:
        case ".csv":
            return con.sql("SELECT * FROM read_csv($1, header = true, columns = $2)", params=[names, columns])
        case ".json":
            text = f"SELECT {fields} FROM read_json($1, format = 'newline_delimited', columns = $2) AS t"
            structs = _tree({tuple(name.split(".")): type_ for name, type_ in columns.items()})
            return con.sql(text, params=[names, {name: _type_text(type_) for name, type_ in structs.items()}])
    return con.sql(f"SELECT {fields} FROM read_parquet($1) AS t", params=[names])


def _nested(table: pa.Table) -> pa.Table:
    columns = {tuple(name.split(".")): table[name].combine_chunks() for name in table.column_names}
    return pa.table({name: _array(of) for name, of in _tree(columns).items()})


def _tree(leaves: Mapping[tuple[str, ...], Any]) -> dict[str, Any]:
    """Leaves by path; what has the first step in common is a tree of its own."""
    heads = dict.fromkeys(path[0] for path in leaves)
    inside = {head: {path[1:]: leaf for path, leaf in leaves.items() if path[0] == head} for head in heads}
    return {head: below[()] if () in below else _tree(below) for head, below in inside.items()}


def _array(of: Any) -> pa.Array:
    """A struct whose fields are all NULL is NULL."""
    if not isinstance(of, dict):
        return of
    arrays = [_array(inner) for inner in of.values()]
    nothing = reduce(pc.and_, [pc.is_null(array) for array in arrays])
    return pa.StructArray.from_arrays(arrays, names=list(of), mask=nothing)


def _type_text(type_: Any) -> str:
    if isinstance(type_, str):
        return type_
    return "STRUCT(" + ", ".join(f'"{name}" {_type_text(inner)}' for name, inner in type_.items()) + ")"


def _quoted(names: Sequence[str]) -> str:
    return ".".join(f'"{name}"' for name in names)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, datetime | date):
        return value.isoformat()
    # JSON has no such numbers; as texts they are read as what they are called.
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
