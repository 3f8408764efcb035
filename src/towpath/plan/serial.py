"""Templates and constants as JSON: a carrier goes on from its checkpoint with exactly the plan it was started with."""

from __future__ import annotations

import datetime as dt
from typing import Any

from sqlglot import exp, serde

from towpath.plan.constants import Value
from towpath.plan.pipeline import Slot
from towpath.plan.templates import Family, Template
from towpath.schema import Type

FAMILY = ("classes", "times", "keys", "window", "reach_us")
PLAIN = ("probes", "ranges", "columns")
SLOTS = ("residuals", "computed", "groups", "aggregates", "having")


def dump_template(template: Template) -> dict[str, Any]:
    return {
        "family": {key: getattr(template.family, key) for key in FAMILY},
        **{part: getattr(template, part) for part in PLAIN},
        **{part: [_dump_slot(slot) for slot in getattr(template, part)] for part in SLOTS},
    }


def load_template(data: dict[str, Any]) -> Template:
    parts: dict[str, Any] = {part: _tuples(data[part]) for part in PLAIN}
    parts |= {part: tuple(_load_slot(slot) for slot in data[part]) for part in SLOTS}
    return Template(Family(**{key: _tuples(data["family"][key]) for key in FAMILY}), **parts)


def _dump_slot(slot: Slot) -> dict[str, Any]:
    return {
        "expr": serde.dump(slot.expr),
        "type": slot.type.value,
        "params": [p.value for p in slot.params],
        "copy": slot.copy,
    }


def _load_slot(data: dict[str, Any]) -> Slot:
    expr = serde.load(data["expr"])
    assert isinstance(expr, exp.Expression)
    return Slot(expr, Type(data["type"]), tuple(Type(p) for p in data["params"]), data["copy"])


def _tuples(value: Any) -> Any:
    return tuple(_tuples(v) for v in value) if isinstance(value, list) else value


def dump_value(value: Value | None) -> Any:
    match value:
        case dt.datetime():
            return {"timestamp": value.isoformat()}
        case dt.date():
            return {"date": value.isoformat()}
        case float():
            return {"double": value.hex()}  # infinities and every bit survive
        case _:
            return value


def load_value(data: Any) -> Value | None:
    match data:
        case {"timestamp": str(text)}:
            return dt.datetime.fromisoformat(text)
        case {"date": str(text)}:
            return dt.date.fromisoformat(text)
        case {"double": str(text)}:
            return float.fromhex(text)
        case _:
            return data
