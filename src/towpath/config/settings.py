"""Values a user writes in a job file, and the words for what is wrong with them."""

from __future__ import annotations

import dataclasses
import difflib
import json
import os
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    create_model,
)
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticCustomError

from towpath.errors import Mistake
from towpath.schema import MOST_DIGITS, DecimalType, Type

STEP = "\x1f"  # between the names of structs and of their fields, as a schema is read: no name of a column holds it
LONGEST_US = 100 * 365 * 24 * 3600 * 1_000_000  # a century: far below what 64 bits of microseconds hold

_UNITS_US = {
    unit: us
    for units, us in (
        ("ms millisecond milliseconds", 1_000),
        ("s sec second seconds", 1_000_000),
        ("m min minute minutes", 60_000_000),
        ("h hour hours", 3_600_000_000),
        ("d day days", 86_400_000_000),
    )
    for unit in units.split()
}

# pydantic's name of a mistake -> what it expected; {names} are from the context of the mistake
_EXPECTED = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "dataclass_type": "keys with values",
    "dict_type": "keys with values",
    "enum": "{expected}",
    "finite_number": "a finite number",
    "float_parsing": "a number",
    "float_type": "a number",
    "greater_than": "more than {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_parsing_size": "a smaller whole number",
    "int_type": "a whole number",
    "invalid_key": "a text as a key",
    "less_than": "less than {lt:g}",
    "less_than_equal": "at most {le:g}",
    "list_type": "a list",
    "literal_error": "{expected}",
    "model_attributes_type": "keys with values",
    "model_type": "keys with values",
    "string_too_short": "a text that is not empty",
    "string_type": "a text",
    "too_short": "at least {min_length}",
    "tuple_type": "a list",
}


class Settings(BaseModel):
    """Frozen settings that refuse keys they do not know."""

    model_config = ConfigDict(extra="forbid", frozen=True)


Kinds = Mapping[str, Mapping[str, type[Settings]]]  # key that has a `type` -> type -> its settings


def refusal(message: str, hint: str = "") -> PydanticCustomError:
    return PydanticCustomError("refusal", "{message}", {"message": message, "hint": hint})


def shown(value: object) -> str:
    """A value as the user wrote it, near enough."""
    if value is None:
        return "nothing"
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."


def listed(words: Iterable[str]) -> str:
    return ", ".join(words)


def meant(word: str, known: Iterable[str]) -> str:
    """The hint for a word that is not one of the known ones."""
    names = list(known)
    close = close_to(word, names)
    return (f"did you mean {close}? " if close else "") + f"known: {listed(names)}"


def close_to(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant."""
    close = difflib.get_close_matches(word.lower(), known, n=1)
    return close[0] if close else None


def _duration_us(value: object) -> int:
    text = "" if isinstance(value, bool) else str(value).strip().lower()
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)", text)
    unit = _UNITS_US.get(match[2] or "seconds") if match else None
    if match is None or unit is None:
        raise refusal(f"expected a duration, got {shown(value)}", 'write it like "500 ms", "2 seconds" or "10 minutes"')
    us = int(Decimal(match[1]) * unit)
    if us > LONGEST_US:
        raise refusal(f"expected a duration of at most 100 years, got {shown(value)}")
    return us


def _duration_ms(value: object) -> int:
    us = _duration_us(value)
    if us % 1000:
        raise refusal(f"expected whole milliseconds, got {shown(value)}")
    return us // 1000


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
EARLIEST, LATEST = (bound.replace(tzinfo=UTC) - EPOCH for bound in (datetime.min, datetime.max))


def _instant_us(value: object) -> int:
    try:
        instant = datetime.fromisoformat(str(value))
    except ValueError:
        raise refusal(f"expected a time, got {shown(value)}", "write it like 2026-01-01T00:00:00Z") from None
    instant = instant if instant.tzinfo else instant.replace(tzinfo=UTC)
    since = instant - EPOCH
    if not EARLIEST <= since <= LATEST:
        raise refusal(f"expected a time in the years 1 to 9999, got {shown(value)}", "it counts in UTC")
    return since // MICROSECOND


def moment_text(us: int, precision: str = "seconds") -> str:
    """An event time for people, in UTC. Data may hold times that no calendar of Python's knows."""
    since = us * MICROSECOND
    if not EARLIEST <= since <= LATEST:
        return f"{'before the year 1' if us < 0 else 'after the year 9999'} ({us:,} us)"
    return (EPOCH + since).replace(tzinfo=None).isoformat(" ", precision)


@dataclasses.dataclass(frozen=True)
class Start:
    """From when on a query answers: from an event time on (None: from the beginning), or from now on."""

    us: int | None = None
    now: bool = False


BEGINNING, NOW = Start(), Start(now=True)


def start_of(value: object) -> Start:
    """`beginning`, `now` or a time, as users write them."""
    match value:
        case Start():
            return value
        case "beginning":
            return BEGINNING
        case "now":
            return NOW
    try:
        return Start(_instant_us(value))
    except PydanticCustomError as error:
        if "years" in error.message():
            raise
        hint = "write it like 2026-01-01T00:00:00Z"
        raise refusal(f"expected beginning, now or a time, got {shown(value)}", hint) from None


def _not_bool(value: object) -> object:
    # YAML reads `yes` and `on` as true, which pydantic would take for the number 1.
    if isinstance(value, bool):
        raise refusal(f"expected a number, got {shown(value)}")
    return value


def plain_value(value: object) -> object:
    # Before pydantic tries one type after the other and reports what is wrong with each.
    if not isinstance(value, str | int | float):  # true and false are numbers of Python's
        raise refusal(f"expected a text, a number, true or false, got {shown(value)}")
    return value


def _located(value: object, info: ValidationInfo) -> object:
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise refusal(f"expected a path, got {shown(value)}", "a path is relative to the job file")
    folder: Path = info.context["folder"] if info.context else Path.cwd()
    return value if "://" in value else str((folder / os.path.expanduser(value)).resolve())


# What other systems call types that we have; `float` is a double here.
_OTHER_NAMES = {
    Type.BOOLEAN: "bool",
    Type.INT: "integer int4 int32 smallint tinyint short byte int2 int8 int16 mediumint",
    Type.BIGINT: "long int64 bigserial",
    Type.DOUBLE: "float real double precision number float4 float8 float32 float64",
    Type.STRING: "varchar text char character nvarchar str utf8 uuid json",
    Type.TIMESTAMP: "timestamp datetime timestamptz timestamp_ntz timestamp_ltz timestamp_ms datetime64",
    Type.DATE: "date32",
}


def _decimal(name: str) -> DecimalType:
    """`decimal(10, 2)`, `numeric(10,2)`."""
    match = re.fullmatch(r"\w+\s*\(\s*(\d{1,4})\s*(?:,\s*(\d{1,4})\s*)?\)", name)
    if match is None:
        hint = "write decimal(18,2) for numbers of 18 digits, 2 of them behind the point; or double"
        raise refusal(f"{shown(name)} does not say how many digits and places it has", hint)
    found = DecimalType(int(match[1]), int(match[2] or 0))
    if not 1 <= found.precision <= MOST_DIGITS or found.scale > found.precision:
        message = f"expected 1 to {MOST_DIGITS} digits, of which places are not more, got {found.value}"
        raise refusal(message, "numbers of more digits are missing; a double has about 15 of any size")
    return found


def _column_type(value: object) -> Type | DecimalType:
    if isinstance(value, list):
        raise refusal(f"{shown(value)} is a list, and lists are missing", "leave the column out")
    name = str(value).lower().strip()
    if re.match(r"(decimal|numeric|dec|money)\b", name):
        return _decimal(name)
    try:
        return Type(name)
    except ValueError:
        known = [*(t.value for t in Type), "decimal(p,s)"]
        word = name.partition("(")[0].split()[:1]
        same = next((t.value for t, names in _OTHER_NAMES.items() if word and word[0] in names.split()), None)
        hint = f"write {same}; known: {listed(known)}" if same else meant(name, known)
        raise refusal(f"{shown(value)} is not a known type of a column", hint) from None


# What an editor is told that users write, where that is not what we make of it; UNIT: what one of a default is.
UNIT = "x-unit"
_WRITTEN_DURATION = {"type": ["string", "number"], "pattern": r"^\s*\d+(\.\d+)?\s*[A-Za-z]*\s*$"}
_WRITTEN_MOMENT = {"type": "string", "examples": ["2026-01-01T00:00:00Z"]}

_PLACES = r"\s*\(\s*\d+\s*(,\s*\d+\s*)?\)$"
WRITTEN_TYPE: dict[str, Any] = {
    "anyOf": [
        {"type": "string", "enum": [*(t.value for t in Type), *(t.value.upper() for t in Type)]},
        {"type": "string", "pattern": f"^(decimal|numeric|DECIMAL|NUMERIC){_PLACES}"},
    ]
}
ColumnType = Annotated[Type | DecimalType, PlainValidator(_column_type), WithJsonSchema(WRITTEN_TYPE)]
Duration = Annotated[int, BeforeValidator(_duration_us), WithJsonSchema({**_WRITTEN_DURATION, UNIT: "us"})]
Milliseconds = Annotated[int, BeforeValidator(_duration_ms), WithJsonSchema({**_WRITTEN_DURATION, UNIT: "ms"})]
Instant = Annotated[int, BeforeValidator(_instant_us), WithJsonSchema({**_WRITTEN_MOMENT, UNIT: "us since 1970"})]
Beginning = Annotated[Start, PlainValidator(start_of), WithJsonSchema(_WRITTEN_MOMENT)]
Plain = Annotated[str | int | float | bool, BeforeValidator(plain_value)]
Whole = Annotated[int, BeforeValidator(_not_bool), Field(le=2**63 - 1)]  # what files, Spark and a journal can hold
Number = Annotated[float, BeforeValidator(_not_bool)]
Location = Annotated[str, BeforeValidator(_located)]  # an absolute path, or a URL as it was written


def problems(error: ValidationError, where: str, model: type[Settings], kinds: Kinds) -> list[Mistake]:
    """Every mistake pydantic found in the settings at `where`."""
    return [_problem(mistake, where, model, kinds) for mistake in error.errors()]


def expectation(mistake: ErrorDetails) -> str:
    """What was expected and what came, in words of our own: those of pydantic are for programmers."""
    if mistake["type"] == "missing":
        return "is missing"
    expected = _EXPECTED.get(mistake["type"], "another value").format_map(mistake.get("ctx", {}))
    return f"expected {expected}, got {shown(mistake['input'])}"


def _problem(mistake: ErrorDetails, where: str, model: type[Settings], kinds: Kinds) -> Mistake:
    path = [str(part).replace(STEP, ".") for part in mistake["loc"]]
    if path and path[0] in model.model_fields and mistake["type"] != "extra_forbidden":
        # pydantic names a default that is refused by its field, not by its key
        path[0] = model.model_fields[path[0]].alias or path[0]
    if len(path) > 1 and path[1] in kinds.get(path[0], {}):
        model = kinds[path[0]][path.pop(1)]  # pydantic puts the value of `type` into the path
    model = _innermost(model, path)
    context: dict[str, Any] = mistake.get("ctx", {})
    match mistake["type"]:
        case "refusal":
            message, hint = context["message"], context["hint"]
        case "missing":
            message, hint = "is missing", _example(model, path[-1:])
        case "extra_forbidden":
            message, hint = "is not a known key", meant(path[-1], _keys(model))
        case "union_tag_not_found":
            path.append("type")
            message, hint = "is missing", f"one of: {listed(kinds[path[0]])}"
        case "union_tag_invalid":
            path.append("type")
            tag = str(context["tag"])
            message, hint = f"{shown(tag)} is not a known type", meant(tag, kinds[path[0]])
        case _:
            message, hint = expectation(mistake), _example(model, path[-1:])
    return Mistake(".".join([where, *path]) if where else ".".join(path), message, hint)


def _innermost(model: type[Settings], path: list[str]) -> type[Settings]:
    """The settings within settings that the last key of a path belongs to."""
    for key in path[:-1]:
        annotation = getattr(_keys(model).get(key), "annotation", None)
        for inner in (annotation, *get_args(annotation)):  # it may be optional
            if isinstance(inner, type) and issubclass(inner, Settings):
                model = inner
    return model


def _keys(model: type[Settings]) -> dict[str, FieldInfo]:
    """The keys of the settings as the user writes them."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _example(model: type[Settings], key: list[str]) -> str:
    field = _keys(model).get(key[0]) if key else None
    return f"for example {key[0]}: {field.examples[0]}" if field and field.examples else ""


def options_from(kind: type, texts: Mapping[str, Any]) -> tuple[Any, list[Mistake]]:
    """A dataclass of options from `key=value` texts, or everything that is wrong with them."""
    types = get_type_hints(kind)
    defined: dict[str, Any] = {f.name: (types[f.name], _default(f)) for f in dataclasses.fields(kind)}
    model = create_model("Options", __base__=Settings, **defined)
    try:
        values = model.model_validate(dict(texts))
    except ValidationError as error:
        return None, problems(error, "", model, {})
    return kind(**{name: getattr(values, name) for name in defined}), []


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return Field(default_factory=field.default_factory)
    return ... if field.default is dataclasses.MISSING else field.default
