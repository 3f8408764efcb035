"""The columns of a schema as people write them: types, structs of types, and the fields that they come from.

A struct is written as keys with types, and each of its fields is a column, called by its path: `user: {id: bigint}` is
the column `user.id`. Whoever reads rows takes the field from there, so that nothing behind knows of structs.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterator, Mapping
from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

from towpath.config.settings import STEP, WRITTEN_TYPE, ColumnType, listed, meant, refusal, shown
from towpath.schema import DecimalType, Type

LONGEST_COLUMN = 200

Kind = Type | DecimalType
FieldPath = tuple[str, ...]  # the names from a row down to a field


def is_column_name(text: str) -> bool:
    """Whether a column can be called so. Lone surrogates (Cs) are in no file, since no encoding has them."""
    return 1 <= len(text) <= LONGEST_COLUMN and all(unicodedata.category(c) not in ("Cc", "Cs") for c in text)


def _flat(schema: object) -> object:
    """Fields of structs beside the other columns, under their path, so that mistakes are found in each of them."""
    return dict(_leaves(schema, "")) if isinstance(schema, dict) else schema


def _leaves(struct: Mapping[object, object], inside: str) -> Iterator[tuple[object, object]]:
    for name, type_ in struct.items():
        if isinstance(name, str) and STEP in name:
            raise refusal(f"not names of columns: {name!r}", f"use no control characters, and up to {LONGEST_COLUMN}")
        if not isinstance(name, str) and (inside or isinstance(type_, dict)):
            raise refusal(f"expected a text as the name of a struct or a field, got {shown(name)}")
        if not isinstance(type_, dict):
            yield (f"{inside}{name}" if inside else name), type_
        elif set(type_) == {"type", "from"} and not _is_type(type_["from"]):
            hint = f"write {name}: {type_['type']} here, and fields: {{{name}: {type_['from']}}} in the source"
            raise refusal(f"{_dotted(f'{inside}{name}')} is a struct here, with the fields type and from", hint)
        elif not type_:
            raise refusal(f"{_dotted(f'{inside}{name}')} is a struct without fields", "name them: {id: bigint}")
        else:
            yield from _leaves(type_, f"{inside}{name}{STEP}")


def _is_type(value: object) -> bool:
    return value in [type_.value for type_ in Type]


# The names of structs and their fields are apart by STEP.
_WRITTEN = {"type": "object", "additionalProperties": {"anyOf": [*WRITTEN_TYPE["anyOf"], {"type": "object"}]}}
WrittenSchema = Annotated[dict[str, ColumnType], BeforeValidator(_flat), WithJsonSchema(_WRITTEN)]


def _path(value: object) -> FieldPath:
    steps = value.split(".") if isinstance(value, str) else value
    if not isinstance(steps, list | tuple) or not steps:
        raise refusal(f"expected a field, got {shown(value)}", _AS_FIELD)
    if not all(isinstance(step, str) and is_column_name(step) for step in steps):
        raise refusal(f"{shown(value)} is no field: it has a name that is empty, too long or no text", _AS_FIELD)
    return tuple(steps)


_AS_FIELD = 'write the names from outside to inside, as in user.id, or as a list: [user, "id.no"]'

# Where columns come from, if that is not the field of their name.
_WRITTEN_PATH = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
WrittenFields = dict[str, Annotated[FieldPath, BeforeValidator(_path), WithJsonSchema(_WRITTEN_PATH)]]


def _dotted(written: str) -> str:
    return written.removesuffix(STEP).replace(STEP, ".")


def named(schema: Mapping[str, Kind]) -> dict[str, Kind]:
    """The columns, each called by its path."""
    return {_dotted(written): type_ for written, type_ in schema.items()}


def paths(schema: Mapping[str, Kind], fields: Mapping[str, FieldPath]) -> dict[str, FieldPath]:
    """The fields of those columns that are not simply the field of their name."""
    found = {_dotted(written): _taken_from(tuple(written.split(STEP)), fields) for written in schema}
    return {name: path for name, path in found.items() if path != (name,)}


def _taken_from(steps: FieldPath, fields: Mapping[str, FieldPath]) -> FieldPath:
    """A struct that comes from elsewhere takes its fields along."""
    for length in range(len(steps), 0, -1):
        path = fields.get(".".join(steps[:length]))
        if path is not None:
            return path + steps[length:]
    return steps


def check_schema(schema: Mapping[str, Kind]) -> None:
    """Raises a refusal."""
    bad = [name for name in map(_dotted, schema) if not is_column_name(name)]
    bad += [step for written in schema for step in written.split(STEP) if not is_column_name(step)]
    if bad:
        hint = f"use 1 to {LONGEST_COLUMN} characters, and no control characters"
        raise refusal(f"not names of columns: {listed(map(repr, dict.fromkeys(bad)))}", hint)
    if len(named(schema)) < len(schema):
        names = [_dotted(written) for written in schema]
        twice = next(name for name in names if names.count(name) > 1)
        raise refusal(f"{twice} is a column and a field of a struct", "call the column otherwise, and name its field")
    refuse_columns_alike(named(schema))


def refuse_columns_alike(columns: Collection[str]) -> None:
    folded = [name.casefold() for name in columns]
    alike = [name for name in columns if folded.count(name.casefold()) > 1]
    if alike:
        hint = "rename them: SQL does not distinguish them"
        raise refusal(f"these columns differ only in case: {listed(alike)}", hint)


def check_fields(schema: Mapping[str, Kind], fields: Mapping[str, FieldPath]) -> None:
    """Raises a refusal if a column cannot come from the field that it is said to come from."""
    steps = [written.split(STEP) for written in schema]
    known = list(dict.fromkeys(".".join(s[:length]) for s in steps for length in range(1, len(s) + 1)))
    if unknown := next((name for name in fields if name not in known), None):
        raise refusal(f"there is no column {shown(unknown)}, which fields names", meant(unknown, known))
    of = paths(schema, fields)
    taken: dict[tuple[str, ...], tuple[str, FieldPath]] = {}  # by the path in lower case: whose it is
    for name in named(schema):
        path = of.get(name, (name,))
        for length in range(1, len(path) + 1):
            owner, before = taken.setdefault(tuple(step.lower() for step in path[:length]), (name, path[:length]))
            if before != path[:length]:
                message = f"{owner} and {name} come from fields that differ only in case: {'.'.join(before)}"
                raise refusal(f"{message} and {'.'.join(path[:length])}", "leave one of them out")
    ends: dict[FieldPath, str] = {}
    for name in named(schema):
        path = of.get(name, (name,))
        if path in ends:
            hint = "leave one of them out: SQL can use a column twice"
            raise refusal(f"{ends[path]} and {name} come from the same field, {'.'.join(path)}", hint)
        ends[path] = name
    for path, name in ends.items():
        for length in range(1, len(path)):
            if whole := ends.get(path[:length]):
                message = f"{whole} is the whole of {'.'.join(path[:length])}, and {name} a field in it"
                raise refusal(message, "leave one of them out")


def check_flat(schema: Mapping[str, Kind], fields: Mapping[str, FieldPath], header: bool) -> None:
    """Raises a refusal if columns of CSV are to come from structs."""
    deep = next((name for name, path in paths(schema, fields).items() if len(path) > 1), None)
    if deep is not None:
        path = paths(schema, fields)[deep]
        hint = f'name the columns of the header: schema: {{x: bigint}}, fields: {{x: ["{".".join(path)}"]}}'
        raise refusal(f"{deep} comes from a struct, which a csv file does not have", hint)
    if fields and not header:
        hint = "remove fields: columns come in the order of the schema, and may have any name"
        raise refusal("a csv file without a header has no names that fields could mean", hint)
