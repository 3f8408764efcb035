"""Expressions of decimals and what they are, worked out by hand. Results are texts; None is NULL."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa

from towpath.schema import Stream, Type, column_of

COLUMNS = {
    "n": "int",
    "price": "decimal(10,2)",
    "rate": "decimal(6,4)",
    "big": "decimal(18,0)",
    "tiny": "decimal(18,18)",
    "k": "bigint",
    "x": "double",
    "t": "string",
    "at": "timestamp",
}
KNOWN = {"s": Stream("s", tuple(column_of(name, kind) for name, kind in COLUMNS.items()), "at")}
ROWS: list[dict[str, Any]] = [
    {"price": "12.50", "rate": "0.1900", "big": "7", "tiny": "0.000000000000000001", "k": 3, "x": 2.675, "t": "1.005"},
    {"price": "-0.05", "rate": "1.0000", "big": "-999999999999999999", "k": -3, "x": -2.675, "t": " -12.345 "},
    {"price": "99999999.99", "rate": "99.9999", "big": "999999999999999999", "k": 2**63 - 1, "x": 1e300, "t": "1e3"},
    {},
    {"price": "0.00", "rate": "0.0000", "big": "0", "tiny": "-0.500000000000000000", "k": 0, "x": -0.0, "t": "x"},
]

MOST = str(2**63 - 1)
# Expression, and its value in each row of ROWS.
CASES: list[tuple[str, list[str | None]]] = [
    ("price", ["12.50", "-0.05", "99999999.99", None, "0.00"]),
    ("price + 1", ["13.50", "0.95", "100000000.99", None, "1.00"]),
    ("price - rate", ["12.3100", "-1.0500", "99999899.9901", None, "0.0000"]),
    ("price * 1.19", ["14.8750", "-0.0595", "118999999.9881", None, "0.0000"]),
    ("price * rate", ["2.375000", "-0.050000", "9999989999.000001", None, "0.000000"]),
    ("price * k", ["37.50", "0.15", None, None, "0.00"]),
    ("big * big", ["49", None, None, None, "0"]),
    ("big * 10", ["70", None, None, None, "0"]),
    ("big + rate", ["7.1900", None, None, None, "0.0000"]),
    ("-price", ["-12.50", "0.05", "-99999999.99", None, "0.00"]),
    ("abs(price)", ["12.50", "0.05", "99999999.99", None, "0.00"]),
    ("tiny", ["0.000000000000000001", None, None, None, "-0.500000000000000000"]),
    ("price / 4", ["3.125", "-0.0125", "24999999.9975", None, "0.0"]),
    ("price * x", ["33.4375", "0.13375", "9.999999999E307", None, "0.0"]),
    ("price > 12.49", ["true", "false", "true", None, "false"]),
    ("price = 12.5", ["true", "false", "false", None, "false"]),
    ("price < rate", ["false", "true", "false", None, "false"]),
    ("price < k", ["false", "false", None, None, "false"]),  # k * 100 is out of range
    ("price > x", ["true", "true", "false", None, "false"]),
    ("price BETWEEN -0.05 AND 12.505", ["true", "true", "false", None, "true"]),
    ("price IN (12.5, 0)", ["true", "false", "false", None, "true"]),
    ("price IS NULL", ["false", "false", "false", "true", "false"]),
    ("price IS DISTINCT FROM 0", ["true", "true", "true", "true", "false"]),
    ("coalesce(price, 1.005)", ["12.500", "-0.050", "99999999.990", "1.005", "0.000"]),
    ("greatest(price, rate, 1)", ["12.5000", "1.0000", "99999999.9900", "1.0000", "1.0000"]),
    ("nullif(price, 0)", ["12.50", "-0.05", "99999999.99", None, None]),
    ("CASE WHEN k > 0 THEN price ELSE 0.001 END", ["12.500", "0.001", "99999999.990", "0.001", "0.001"]),
    ("round(price, 1)", ["12.5", "-0.1", "100000000.0", None, "0.0"]),
    ("round(price)", ["13", "0", "100000000", None, "0"]),
    ("round(rate, 2)", ["0.19", "1.00", "100.00", None, "0.00"]),
    ("round(price, 5)", ["12.50", "-0.05", "99999999.99", None, "0.00"]),
    ("round(tiny, 17)", ["0.00000000000000000", None, None, None, "-0.50000000000000000"]),
    ("CAST(price AS DECIMAL(18, 4))", ["12.5000", "-0.0500", "99999999.9900", None, "0.0000"]),
    ("CAST(price AS DECIMAL(4, 1))", ["12.5", "-0.1", None, None, "0.0"]),
    ("CAST(k AS DECIMAL(5, 2))", ["3.00", "-3.00", None, None, "0.00"]),
    ("CAST(x AS DECIMAL(9, 2))", ["2.68", "-2.68", None, None, "0.00"]),
    ("CAST(t AS DECIMAL(9, 2))", ["1.01", "-12.35", None, None, None]),
    ("CAST('.5' AS DECIMAL(3, 1))", ["0.5"] * 5),
    ("CAST('5.' AS DECIMAL(3, 1))", ["5.0"] * 5),
    ("CAST('+0099.95' AS DECIMAL(3, 1))", [None] * 5),
    ("CAST('99.94' AS DECIMAL(3, 1))", ["99.9"] * 5),
    ("CAST('0.000000000000000000000000000001' AS DECIMAL(18, 18))", ["0.000000000000000000"] * 5),
    ("CAST(NULL AS DECIMAL(3, 1))", [None] * 5),
    ("DECIMAL '1.50'", ["1.50"] * 5),
    ("CAST(price AS DOUBLE)", ["12.5", "-0.05", "99999999.99", None, "0.0"]),
    ("CAST(price AS BIGINT)", ["12", "0", "99999999", None, "0"]),
    ("CAST(big AS INT)", ["7", None, None, None, "0"]),
    ("CAST(price AS STRING)", ["12.50", "-0.05", "99999999.99", None, "0.00"]),
    ("CAST(tiny AS STRING)", ["0.000000000000000001", None, None, None, "-0.500000000000000000"]),
    ("CAST(big AS STRING)", ["7", "-999999999999999999", "999999999999999999", None, "0"]),
    ("unscaled(price)", ["1250", "-5", "9999999999", None, "0"]),
    ("scaled(k, 2)", ["0.03", "-0.03", "92233720368547758.07", None, "0.00"]),
    ("CAST(scaled(k, 0) AS STRING)", ["3", "-3", MOST, None, "0"]),
]
SECOND = 1_000_000
# Of all rows, which are in one window.
AGGREGATES: list[tuple[str, str | None]] = [
    ("sum(price)", "100000012.44"),
    ("sum(price * rate)", "9999990001.325001"),
    ("min(price)", "-0.05"),
    ("max(rate)", "99.9999"),
    ("avg(price)", "25000003.11"),
    ("count(price)", "4"),
    ("count(DISTINCT price)", "4"),
    ("sum(big)", "7"),
    ("sum(big * 9)", "63"),
    ("sum(price) + 1", "100000013.44"),
]


def table() -> pa.Table:
    """As streams have it: decimals as their units."""

    def value(name: str, row: dict[str, Any]) -> Any:
        decimal = KNOWN["s"].column(name)
        assert decimal is not None
        given = row.get(name)
        return int(Decimal(given).scaleb(decimal.decimal.scale)) if decimal.decimal and given is not None else given

    arrow = {Type.INT: pa.int32(), Type.BIGINT: pa.int64(), Type.DOUBLE: pa.float64(), Type.STRING: pa.string()}
    columns = {
        c.name: pa.array([value(c.name, row) for row in ROWS], arrow[c.type])
        for c in KNOWN["s"].columns
        if c.name not in ("n", "at")
    }
    columns["n"] = pa.array(range(len(ROWS)), pa.int32())
    columns["at"] = pa.array([n * 1000 for n in range(len(ROWS))], pa.timestamp("us", tz="UTC"))
    return pa.table(columns).select([c.name for c in KNOWN["s"].columns])


def shown(value: Any) -> str | None:
    """A value of a result as the cases have it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return "9.999999999E307" if value > 1e300 else repr(value + 0.0)
    return None if value is None else f"{value:f}" if isinstance(value, Decimal) else str(value)
