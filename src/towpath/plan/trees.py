"""Expressions as JSON, without where they stood in a text and what else sqlglot notes beside them."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp

from towpath.lang.aggregates import StringAgg
from towpath.lang.decimals import CONVERSIONS
from towpath.lang.functions import Log10
from towpath.lang.json_paths import JsonValue
from towpath.lang.texts import SplitIndex

DTYPE = "DType"  # names a type in a cast, and is no node


class Grouped(exp.Expression):
    """A grouped expression in what an aggregate puts out: the value of the group, which is not calculated again.

    What is grouped is a matter of one pipeline. So the shape has to say it: in a template that another pipeline shares,
    the same expression may be a group of the other one alone.
    """

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


# Those that are not sqlglot's own.
NODES = {node.__name__: node for node in (Grouped, JsonValue, Log10, SplitIndex, StringAgg, *CONVERSIONS)}


def dump_tree(node: Any) -> Any:
    """An expression without where it stood in a text and what else sqlglot notes beside it, which serde keeps."""
    match node:
        case exp.Expr():
            return {type(node).__name__: {k: dump_tree(v) for k, v in node.args.items() if v is not None}}
        case list():
            return [dump_tree(v) for v in node]
        case exp.DType():
            return {DTYPE: node.value}
        case _:
            return node


def load_tree(data: Any) -> Any:
    match data:
        case dict():
            ((name, about),) = data.items()
            if name == DTYPE:
                return exp.DType(about)
            node = NODES.get(name) or getattr(exp, name)
            return node(**{k: load_tree(v) for k, v in about.items()})
        case list():
            return [load_tree(v) for v in data]
        case _:
            return data
