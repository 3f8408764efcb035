"""Values in texts of JSON, as docs/language.md says what they are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

import polars as pl

from towpath.lang.json_paths import DEEPEST_JSON, LONGEST_JSON, LONGEST_NUMBER, Step
from towpath.schema import INTEGERS, Type
from towpath.vector.texts import double_text


def value(text: pl.Expr, path: Sequence[Step]) -> pl.Expr:
    def of_batch(values: pl.Series) -> pl.Series:
        return pl.Series(values.name, [None if v is None else _value(v, path) for v in values], pl.String)

    return text.map_batches(of_batch, return_dtype=pl.String, is_elementwise=True)


def _value(text: str, path: Sequence[Step]) -> str | None:
    if len(text) > LONGEST_JSON or (_opened(text) > DEEPEST_JSON and _depth(text) > DEEPEST_JSON):
        return None
    try:
        found = (_CAREFUL if _LONG.search(text) else _DECODER).decode(text)
        if _SURROGATE.search(text):
            json.dumps(found, ensure_ascii=False).encode()  # half of a character is no character
    except (ValueError, RecursionError):
        return None
    for step in path:
        if isinstance(step, str):
            found = found.get(step) if isinstance(found, dict) else None
        else:
            found = found[step] if isinstance(found, list) and step < len(found) else None
    return _shown(found)


def _shown(found: Any) -> str | None:
    match found:
        case str():
            return found
        case bool():
            return str(found).lower()
        case int() if found in INTEGERS[Type.BIGINT]:
            return str(found)
        case int() | float():
            return double_text(float(str(found)))
    return None


def _opened(text: str) -> int:
    return text.count("[") + text.count("{")


def _depth(text: str) -> int:
    """How many objects and lists are around each other."""
    deepest = depth = 0
    inside = escaped = False
    for c in text:
        if inside:
            inside, escaped = escaped or c != '"', c == "\\" and not escaped
        elif c == '"':
            inside = True
        elif c in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif c in "]}":
            depth -= 1
    return deepest


def _object(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, item in pairs:
        if key in found:
            raise ValueError(f"the key {key} comes twice")
        found[key] = item
    return found


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")


def _number(text: str) -> int | float:
    if len(text) > LONGEST_NUMBER:
        raise ValueError("a number is too long")
    return float(text) if set(".eE") & set(text) else int(text)


_LONG = re.compile(rf"[-+.eE\d]{{{LONGEST_NUMBER + 1}}}")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_no_number)
_CAREFUL = json.JSONDecoder(
    object_pairs_hook=_object, parse_constant=_no_number, parse_int=_number, parse_float=_number
)
