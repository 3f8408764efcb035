"""The types of the language in Spark."""

from __future__ import annotations

from collections.abc import Mapping

from towpath.schema import Type


def ddl(columns: Mapping[str, Type]) -> str:
    """A schema as Spark reads it."""
    return ", ".join(f"`{name}` {type_.value}" for name, type_ in columns.items())
