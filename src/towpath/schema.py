"""Streams and their columns: the words every layer shares."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, ClassVar

STREAM = "_stream"  # the column of an input that says which stream a row is of
_PLAIN = re.compile("[A-Za-z][A-Za-z0-9_]*")
LINK = "link"  # the origin of streams that are made of others while a job runs
RESULT_TIME = "result_time"  # the event time of those, of the first level
TABLE = "table"  # the origin of reference tables, which have no event time
TABLES = "\x01tables "  # begins what a class says of the tables that are joined; no name holds a control character
CLASSES_KEPT = 4_096


@dataclass(frozen=True)
class DecimalType:
    """The type of numbers with so many places. They travel as a BIGINT of units of 10^-scale, and below the language
    nobody knows of them."""

    precision: int  # digits, at most
    scale: int
    numeric: ClassVar[bool] = False  # no number as long as it is not calculated with
    integral: ClassVar[bool] = False

    @property
    def value(self) -> str:
        return f"decimal({self.precision},{self.scale})"


_DECIMAL = re.compile(r"decimal\((\d{1,9}),\s*(\d{1,9})\)")
MOST_DIGITS = 18  # of a column: all such numbers are units that fit into a BIGINT
COMPUTED_DIGITS = 19  # of what is computed, as many as a BIGINT has


def decimal_of(text: str) -> DecimalType | None:
    match = _DECIMAL.fullmatch(text)
    return DecimalType(int(match[1]), int(match[2])) if match else None


class Type(Enum):
    """A column type of the language. The value is its name in job files, messages and Spark."""

    sql: str  # its name in the checked tree, which DuckDB has too
    width: int  # bytes of a value, for estimates

    BOOLEAN = "boolean", "BOOLEAN", 1
    INT = "int", "INT", 4
    BIGINT = "bigint", "BIGINT", 8
    DOUBLE = "double", "DOUBLE", 8
    STRING = "string", "TEXT", 20  # of any length; a short one
    TIMESTAMP = "timestamp", "TIMESTAMP", 8
    DATE = "date", "DATE", 4

    # With defaults for mypy, to which Type("int") is a call of this.
    def __new__(cls, name: str, sql: str = "", width: int = 0) -> Type:
        made = object.__new__(cls)
        made._value_, made.sql, made.width = name, sql, width
        return made

    @classmethod
    def _missing_(cls, value: object) -> Type | None:
        return cls.BIGINT if decimal_of(str(value)) else None

    @property
    def numeric(self) -> bool:
        return self in (Type.INT, Type.BIGINT, Type.DOUBLE)

    @property
    def integral(self) -> bool:
        return self in (Type.INT, Type.BIGINT)


INTEGERS = {Type.INT: range(-(2**31), 2**31), Type.BIGINT: range(-(2**63), 2**63)}


@dataclass(frozen=True)
class Column:
    name: str
    type: Type  # in which it travels
    decimal: DecimalType | None = None

    @property
    def scale(self) -> int | None:
        """Of a decimal."""
        return None if self.decimal is None else self.decimal.scale

    @property
    def kind(self) -> Type | DecimalType:
        """What it is to people."""
        return self.decimal or self.type


def column_of(name: str, kind: Type | DecimalType | str) -> Column:
    decimal = decimal_of(kind) if isinstance(kind, str) else kind if isinstance(kind, DecimalType) else None
    return Column(name, Type.BIGINT if decimal else Type(kind), decimal)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Stream:
    """A named, typed, replayable sequence of tuples with an event-time column."""

    name: str
    columns: tuple[Column, ...]
    time: str  # the event-time column; always of type TIMESTAMP
    delay_us: int = 0  # allowed delay: how far behind the newest tuple a tuple may still come
    rate: float = 1000.0  # estimated tuples per second, for the planner's estimates
    origin: str = ""  # where it comes from, if streams from elsewhere must not be read together with it

    def column(self, name: str) -> Column | None:
        return next((c for c in self.columns if c.name == name), None)

    @property
    def is_table(self) -> bool:
        """Whether it is a reference table: a catalog names those beside the streams."""
        return self.origin == TABLE

    @property
    def schema_class(self) -> tuple[tuple[str, str], ...]:
        """Streams of one class have the same columns, time column and origin, so that one input can read them all."""
        origin = (("", self.origin),) if self.origin else ()
        return (*sorted((c.name, c.kind.value) for c in self.columns), ("", self.time), *origin)


def result_time(level: int) -> str:
    """The time column of derived streams. So those of two levels are of two classes, which are read apart.

    A carrier that read one level and made the next would otherwise wait for itself.
    """
    return RESULT_TIME if level == 1 else f"{RESULT_TIME}_{level}"


def level(stream: Stream) -> int:
    """How many derived streams lie one upon the other, with this one; 0 for a stream that a job defines."""
    return int(stream.time.removeprefix(RESULT_TIME).removeprefix("_") or 1) if stream.origin == LINK else 0


def internal(name: str) -> str:
    """The name of a stream's column inside of inputs, carriers and logs.

    A stream's columns may have any names. Beside them are columns of towpath's own, which begin with an underscore, and
    Spark and DuckDB read dots, quotes and letters of other alphabets their own way. What is not plain is spelled out.
    """
    return name if _PLAIN.fullmatch(name) else f"_x{name.encode().hex()}"


BEFORE_ALL_US = -(2**62)  # earlier than any event time: nothing has been seen yet
MS = 1_000  # microseconds; Spark's watermarks are whole milliseconds
# Spark's watermark begins at 1970, and all before would be late. Carriers count event time from a day before the first
# timestamp that there is.
BEFORE_1970_US = 62_135_683_200_000_000


def in_time_from(newest_us: int, delay_us: int) -> int:
    """The oldest event time that is in time once `newest_us` was seen.

    Both are rounded to milliseconds in favour of the tuple, so what is `delay_us` behind or less is always in time.
    """
    return (newest_us // MS - -(-delay_us // MS)) * MS


def newest_before(event_us: int, delay_us: int) -> int:
    """The newest event time after which `event_us` was still in time."""
    return (event_us // MS - (-delay_us // MS)) * MS + MS - 1


SchemaClass = tuple[tuple[str, str], ...]
Catalog = Mapping[str, Stream]


def reference_table(name: str, columns: tuple[Column, ...]) -> Stream:
    """A table as a catalog has it."""
    return Stream(name, columns, "", rate=0.0, origin=TABLE)


def class_of(table: Stream) -> SchemaClass:
    """What distinguishes a table from others, as a class does streams."""
    return (*table.schema_class, ("", table.name))


@lru_cache(CLASSES_KEPT)
def base_class(schema_class: SchemaClass) -> SchemaClass:
    """The class of the streams themselves, without the columns that tables bring (plan/lookups.py)."""
    entries = tables_entry(schema_class)
    if not entries:
        return schema_class
    brought = {name for entry in entries for _, name, _ in entry["columns"]}
    return tuple(entry for entry in schema_class[:-1] if not entry[0] or entry[0] not in brought)


@lru_cache(CLASSES_KEPT)
def tables_of(schema_class: SchemaClass) -> frozenset[Stream]:
    """The reference tables that tuples of a class are joined with, as a catalog had them."""
    return frozenset(
        reference_table(entry["table"], tuple(column_of(column, type_) for column, _, type_ in entry["columns"]))
        for entry in tables_entry(schema_class)
    )


def tables_entry(schema_class: SchemaClass) -> list[dict[str, Any]]:
    """What a class says of the tables, as plan/lookups.py has written it."""
    name, text = schema_class[-1]
    found: list[dict[str, Any]] = json.loads(text.removeprefix(TABLES)) if not name and text.startswith(TABLES) else []
    return found


def is_link(schema_class: SchemaClass) -> bool:
    schema_class = base_class(schema_class)
    # Two entries without a name: the time column of a stream that has no origin may be called like one.
    return schema_class[-2][0] == "" and schema_class[-1] == ("", LINK)


def stream_of(schema_class: SchemaClass) -> Stream:
    """What the streams of a class have in common, for a class of derived streams: they come and go."""
    *columns, (_, time), (_, origin) = base_class(schema_class)
    return Stream("", tuple(column_of(name, type_) for name, type_ in columns), time, origin=origin)
