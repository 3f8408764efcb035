"""Functions of texts that DuckDB's statements call, since DuckDB has another meaning of them or changes it."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal

import duckdb

UPPER, LOWER, DOUBLE_TEXT = "towpath_upper", "towpath_lower", "towpath_double_text"


def register(con: duckdb.DuckDBPyConnection) -> None:
    """Makes the functions known to a connection."""
    for name, function, taken in FUNCTIONS:
        # The connection knows it, or another one to the same database has brought it.
        with suppress(duckdb.NotImplementedException, duckdb.CatalogException):
            con.create_function(name, function, [taken], "VARCHAR")


def double_text(value: float) -> str:
    """The shortest digits that are this double, two at least, with an exponent from 1.0E7 on and below 0.001."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value + 0.0)
    two = f"{value:.1e}"  # the nearest of two digits: 4.9E-324, although 5E-324 is shorter
    sign, digits, exponent = Decimal(two if float(two) == value else repr(value)).as_tuple()
    shown = "".join(map(str, digits)).rstrip("0")
    power = len(digits) - 1 + int(exponent)
    return f"{'-' if sign else ''}{shown[0]}.{shown[1:] or '0'}E{power}"


FUNCTIONS: tuple[tuple[str, Callable[..., str], str], ...] = (
    (UPPER, str.upper, "VARCHAR"),
    (LOWER, str.lower, "VARCHAR"),
    (DOUBLE_TEXT, double_text, "DOUBLE"),
)
