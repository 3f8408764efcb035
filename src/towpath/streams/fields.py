"""Fields within structs as DuckDB reads them: their types as a tree, and the value of each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from duckdb.sqltypes import DuckDBPyType

FieldPath = tuple[str, ...]  # from a row down to a field
Fields = tuple[tuple[str, FieldPath], ...]  # of the columns that are not simply the field of their name
Decimals = tuple[tuple[str, int, int], ...]  # of the columns that are read as units of 10^-places: digits and places


def as_pairs(fields: Mapping[str, Sequence[str]]) -> Fields:
    """Also as JSON has kept them."""
    return tuple(sorted((name, tuple(path)) for name, path in fields.items()))


def tree(types: Mapping[FieldPath, str]) -> dict[str, Any]:
    """Types by field; structs are trees of their own."""
    found: dict[str, Any] = {}
    for path, type_ in types.items():
        inside = found
        for step in path[:-1]:
            inside = inside.setdefault(step, {})
        inside[path[-1]] = type_
    return found


def type_text(type_: Any) -> str:
    """A type of a tree as SQL has it."""
    if isinstance(type_, str):
        return type_
    return "STRUCT(" + ", ".join(f"{quoted(name)} {type_text(inner)}" for name, inner in type_.items()) + ")"


def field_value(path: FieldPath, row: str) -> str:
    """A field, of what stands for a row; NULL if a struct on the way is."""
    found = f"{row}.{quoted(path[0])}"
    for step in path[1:]:
        found = f"struct_extract({found}, {sql_text(step)})"
    return found


@dataclass(frozen=True)
class StoredFields:
    """Of a file with types of its own: what stands for each column, its type, and what no file should have."""

    values: dict[str, str]
    types: dict[str, str]
    faults: dict[str, str]  # tests, and the reason of each


def stored_fields(columns: Mapping[str, DuckDBPyType], paths: Mapping[str, FieldPath]) -> StoredFields:
    """Names in any case, as those of columns. What is no struct has no fields, and is refused where it is something."""
    found = StoredFields({}, {}, {})
    for name, path in paths.items():
        stored, inside = "", columns
        for length, step in enumerate(path, start=1):
            spelled = next((known for known in inside if known.lower() == step.lower()), None)
            if spelled is None:
                break
            stored = f"struct_extract({stored}, {sql_text(spelled)})" if stored else quoted(spelled)
            type_ = inside[spelled]
            if length == len(path):
                found.values[name], found.types[name] = stored, str(type_)
            elif type_.id != "struct":
                found.faults[f"{stored} IS NOT NULL"] = f"{'.'.join(path[:length])}: expected a struct, got {type_}"
                break
            else:
                inside = {str(name): inner for name, inner in type_.children if isinstance(inner, DuckDBPyType)}
    return found


def pointer(path: FieldPath) -> str:
    """A place in JSON, as RFC 6901 has it."""
    return "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in path)


def faults(line: str, paths: Iterable[FieldPath]) -> dict[str, str]:
    """What is wrong with the fields of a line of JSON, whatever their values are: tests, and the reason of each.

    A key that comes twice in an object, and something else where an object is to be.
    """
    found: dict[str, str] = {}
    for path in paths:
        for length in range(1, len(path) + 1):
            inside, name = path[: length - 1], ".".join(path[:length])
            keys = f"json_keys({line}, {sql_text(pointer(inside))})" if inside else f"json_keys({line})"
            twice = f"len(list_filter({keys}, lambda k: k = {sql_text(path[length - 1])})) > 1"
            found[twice] = sql_text(f"the key {name} comes twice")
            if length < len(path):
                kind = f"json_type({line}, {sql_text(pointer(path[:length]))})"
                reason = sql_text(f"{name}: expected an object, got ")
                found[f"{kind} NOT IN ('NULL', 'OBJECT')"] = f"{reason} || lower({kind})"
    return found


def alone(path: FieldPath, type_: str) -> str:
    """The type of one field, as `json_transform` is given it."""
    return sql_text(json.dumps(tree({path: type_})))


def sql_text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
