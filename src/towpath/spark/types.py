"""The types of the language in Spark."""

from __future__ import annotations

from collections.abc import Mapping

from towpath.schema import Type

# Spark's readers put what they cannot read into a column of this name, if there is one; no stream's column has it.
NO_CORRUPT = ("columnNameOfCorruptRecord", "\x01")


def ddl(columns: Mapping[str, Type]) -> str:
    """A schema as Spark reads it."""
    return ", ".join(f"`{name.replace('`', '``')}` {type_.value}" for name, type_ in columns.items())
