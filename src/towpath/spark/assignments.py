"""The assignment table of a carrier: a small Arrow file that Spark reads again in every micro-batch.

A Python data source on the static side of a stream-static join is planned and read anew for each micro-batch, so
replacing the file adds, changes and removes fragments without touching the running query. The version travels in a
column and comes back through an observed metric: that is how the controller knows which micro-batch was the first to
see a change.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from towpath.arrow import arrow_schema
from towpath.plan.assignment import NOBODY, Row
from towpath.schema import Type
from towpath.spark.types import ddl


def table_columns(columns: Mapping[str, Type]) -> dict[str, Type]:
    return {"_version": Type.INT, **columns}


def publish(path: Path, version: int, columns: Mapping[str, Type], rows: Sequence[Row]) -> None:
    """Replaces the table atomically; a reader sees the old or the new version, never a part of one."""
    schema = arrow_schema(table_columns(columns))
    # A row that matches nothing, so that an empty table has a version too.
    everyone: list[Row] = [{"_fragment": NOBODY}, *rows]
    arrays = [
        pa.array([version] * len(everyone), pa.int32())
        if field.name == "_version"
        else pa.array([row.get(field.name) for row in everyone], field.type)
        for field in schema
    ]
    scratch = path.with_suffix(".new")
    with pa.OSFile(str(scratch), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
    with scratch.open("rb") as written:
        os.fsync(written.fileno())
    os.replace(scratch, path)


def schema_ddl(columns: Mapping[str, Type]) -> str:
    return ddl(table_columns(columns))
