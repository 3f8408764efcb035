"""The query language: SQL text to checked queries, their types, and back to text."""

from __future__ import annotations

from towpath.lang.parse import parse
from towpath.lang.query import WINDOW, Input, Item, Query, Select, Window
from towpath.lang.scope import column
from towpath.lang.show import expression_text, parenthesised, to_sql
from towpath.lang.typing import ALLOWED, infer

__all__ = [
    "ALLOWED",
    "WINDOW",
    "Input",
    "Item",
    "Query",
    "Select",
    "Window",
    "column",
    "expression_text",
    "infer",
    "parenthesised",
    "parse",
    "to_sql",
]
