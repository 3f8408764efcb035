"""The job file as JSON Schema, for editors: made of the settings that a job file is checked against.

It knows keys, types and choices. What depends on other keys, on files and on SQL `towpath check` knows.
"""

from __future__ import annotations

from typing import Any

from towpath.config.network import NetworkDef
from towpath.config.nodes import ConnectNode, EmbeddedNode
from towpath.config.settings import EPOCH, MICROSECOND, UNIT
from towpath.config.steering import ControlDef
from towpath.job import JobText, QueryDef, ResultsDef, ViewDef
from towpath.streams.definition import StreamText
from towpath.tables.definition import TableText

DIALECT = "https://json-schema.org/draft/2020-12/schema"
LIMITS = {"ge": "minimum", "le": "maximum", "gt": "exclusiveMinimum", "lt": "exclusiveMaximum"}
SIZES = ((86_400_000_000, "day"), (3_600_000_000, "hour"), (60_000_000, "minute"), (1_000_000, "second"))
WIDEST = 2**63 - 1  # a bound that only says what we can hold
TEXTS = {"options", "spark"}  # numbers, and true and false, are texts there
# A stream that stands for many has {n} in place of its number.
NUMBERED = {"type": "string", "pattern": r"\{n\}"}


class _JobFile(JobText):
    """The file with all its sections, which are otherwise read one entry at a time."""

    streams: dict[str, StreamText]
    tables: dict[str, TableText] | None = None
    nodes: dict[str, EmbeddedNode | ConnectNode] | None = None
    views: dict[str, str | ViewDef] | None = None
    queries: dict[str, str | QueryDef] | None = None
    queries_folder: str | None = None
    results: ResultsDef | None = None
    control: ControlDef | None = None
    network: NetworkDef | None = None


def schema() -> dict[str, Any]:
    made = _JobFile.model_json_schema(by_alias=True)
    made.pop("description", None)
    for name, definition in made["$defs"].items():
        definition.pop("description", None)
        if name.endswith("Source"):
            definition["properties"] = {key: _may_be_numbered(value) for key, value in definition["properties"].items()}
        for key in TEXTS & definition.get("properties", {}).keys():
            if definition["properties"][key].get("additionalProperties") == {"type": "string"}:
                definition["properties"][key]["additionalProperties"] = {"type": ["string", "number", "boolean"]}
    retention = made["$defs"]["ResultsDef"]["properties"]["retention"]
    retention["anyOf"] = [*retention["anyOf"][:1], {"const": "forever"}]
    return {"$schema": DIALECT, "title": "A job file of towpath", **_plain(made, named=False)}


def _may_be_numbered(value: dict[str, Any]) -> dict[str, Any]:
    if value.get("type") not in ("integer", "number"):
        return value
    about: dict[str, Any] = {key: value[key] for key in ("default", "examples") if key in value}
    kind = {key: found for key, found in value.items() if key not in about}
    return {"anyOf": [kind, NUMBERED], **about}


def _plain(node: Any, *, named: bool) -> Any:
    """With words that every editor knows; `named`: its keys are names that users choose or know, and no words."""
    if isinstance(node, list):
        return [_plain(item, named=False) for item in node]
    if not isinstance(node, dict):
        return node
    if named:
        return {key: _plain(value, named=False) for key, value in node.items()}
    found = {
        key: _plain(value, named=key in ("properties", "$defs")) for key, value in node.items() if key != "default"
    }
    found.pop("title", None)
    unit = found.pop(UNIT, None)
    numeric = found.get("type") in ("integer", "number")
    for ours, theirs in LIMITS.items():
        bound = found.pop(ours, None)
        if bound is not None and numeric and bound != WIDEST:
            found.setdefault(theirs, bound)
    if found.get("maximum") == WIDEST:
        del found["maximum"]
    if isinstance(node.get("default"), str | int | float | bool):
        found["default"] = _written(node["default"], unit or _unit_inside(node))
    return found


def _unit_inside(node: dict[str, Any]) -> str | None:
    return next((str(choice[UNIT]) for choice in node.get("anyOf", ()) if UNIT in choice), None)


def _written(value: Any, unit: str | None) -> Any:
    """A default as one would write it."""
    match unit:
        case "us":
            return _duration(value)
        case "ms":
            return _duration(value * 1000)
        case "us since 1970":
            return (EPOCH + value * MICROSECOND).isoformat().replace("+00:00", "Z")
        case _:
            return value


def _duration(us: int) -> str:
    for size, name in SIZES:
        if us and us % size == 0:
            return f"{us // size} {name}{'' if us == size else 's'}"
    return f"{us // 1000} ms" if us else "0 seconds"
