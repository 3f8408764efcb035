"""The join of an input with reference tables, before anything else is done with its tuples."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import reduce
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from towpath.lang.query import Lookup
from towpath.plan.assignment import input_column
from towpath.plan.lookups import values_of
from towpath.schema import Stream, Type
from towpath.spark.expressions import value_of_row
from towpath.spark.table_source import FORMAT
from towpath.spark.types import ddl


def join_tables(
    rows: DataFrame,
    alias: str,
    types: Mapping[str, Type],
    lookups: Sequence[Lookup],
    needed: Collection[str],
    open_table: Callable[[Lookup, Sequence[str]], DataFrame],
) -> DataFrame:
    """The tuples of an input with those columns of tables that are needed, one for each row that they find.

    `types` are those of all columns that tuples have in the end; `open_table` gives some columns of a table.
    """
    asked = {*needed, *values_of(lookups)}
    for lookup in lookups:
        brought = {name: column.name for name, column in lookup.columns if column.name in asked}
        keys = list(dict.fromkeys(name for _, name in lookup.keys))
        wanted = list(dict.fromkeys([*brought, *keys]))
        table = open_table(lookup, wanted)
        place = {name: f"c{n}" for n, name in enumerate(wanted)}
        renamed = table.select(
            *(F.col(place[name]).alias(input_column(alias, column)) for name, column in brought.items()),
            *(F.col(place[name]).alias(f"_key{n}") for n, name in enumerate(keys)),
        )
        found = [
            _equal(value_of_row(value, alias, types), F.col(f"_key{keys.index(name)}"), lookup.types[name])
            for value, name in lookup.keys
        ]
        kind = "left" if lookup.outer else "inner"
        rows = rows.join(F.broadcast(renamed), reduce(Column.__and__, found), kind)
        rows = rows.drop(*(f"_key{n}" for n in range(len(keys))))
    return rows


def _equal(value: Column, key: Column, type_: Type) -> Column:
    """Integers are compared in 64 bits, of which the engine makes one kind of value."""
    return value.cast("bigint") == key.cast("bigint") if type_.integral else value == key


def open_version(
    spark: SparkSession, lookup: Lookup, columns: Sequence[str], folder_of: Callable[[Stream], Path], offsets: Path
) -> DataFrame:
    """Some columns of the version that the micro-batch has which `offsets` has newest: c0, c1, ..."""
    types = lookup.types
    folder = folder_of(lookup.reads)
    return (
        spark.read.format(FORMAT)
        .option("path", str(folder))
        .option("pins", str(offsets.parent.parent / "tables" / folder.name))
        .option("offsets", str(offsets))
        .option("columns", json.dumps(list(columns)))
        .option("schema", ddl({f"c{n}": types[name] for n, name in enumerate(columns)}))
        .load()
    )
