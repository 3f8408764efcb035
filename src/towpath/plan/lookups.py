"""Reference tables in a plan: what a scan looks up, and the class of streams that it makes.

A table is no stream. A scan has the tables that its tuples are joined with, and the class of what it reads says which,
and by what: after the columns, the time and the origin of the streams comes one entry more, which `schema.base_class`
takes away again. So all above the scan sees columns, and streams with other tables are read by other inputs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from sqlglot import exp

from towpath.lang.query import ROW, Lookup, with_tables
from towpath.plan.expressions import canonical, form
from towpath.plan.trees import dump_tree, load_tree
from towpath.schema import TABLES, SchemaClass, Stream, column_of, tables_entry


def in_canonical_form(lookup: Lookup) -> Lookup:
    keys = ((canonical(value, {ROW: ROW}), name) for value, name in lookup.keys)
    return replace(lookup, keys=tuple(sorted(keys, key=lambda key: (key[1], form(key[0])))))


def joined_class(stream: Stream, lookups: Iterable[Lookup]) -> SchemaClass:
    """The class of a stream whose tuples are joined with tables."""
    found = [_dump(lookup) for lookup in lookups]
    if not found:
        return stream.schema_class
    return (*with_tables(stream, lookups).schema_class, ("", TABLES + json.dumps(found, separators=(",", ":"))))


def lookups_of(schema_class: SchemaClass) -> tuple[Lookup, ...]:
    """What tuples of a class look up, each table after those whose columns it is looked up by."""
    return tuple(map(_load, tables_entry(schema_class)))


def values_of(lookups: Iterable[Lookup]) -> frozenset[str]:
    """The columns of the tuple that are looked up by."""
    return frozenset(c.name for lookup in lookups for value, _ in lookup.keys for c in value.find_all(exp.Column))


def _dump(lookup: Lookup) -> dict[str, object]:
    return {
        "table": lookup.table,
        "columns": [[name, brought.name, brought.kind.value] for name, brought in lookup.columns],
        "keys": [[dump_tree(value), name] for value, name in lookup.keys],
        "outer": lookup.outer,
    }


def _load(entry: dict[str, Any]) -> Lookup:
    columns = ((name, column_of(brought, type_)) for name, brought, type_ in entry["columns"])
    keys = ((load_tree(value), name) for value, name in entry["keys"])
    return Lookup(str(entry["table"]), tuple(columns), tuple(keys), bool(entry["outer"]))
