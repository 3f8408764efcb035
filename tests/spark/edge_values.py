"""Values at the edges of every type, and a table of them."""

from __future__ import annotations

import datetime as dt

INT, BIG, DBL, STR, TIME, DAY, BOOL = "int", "bigint", "double", "string", "timestamp", "date", "boolean"
TYPES = (INT, BIG, DBL, STR, TIME, DAY, BOOL)
DUCK = {INT: "INTEGER", BIG: "BIGINT", DBL: "DOUBLE", STR: "VARCHAR", TIME: "TIMESTAMP", DAY: "DATE", BOOL: "BOOLEAN"}
NUMBERS, WHOLE, ORDERED = (INT, BIG, DBL), (INT, BIG), (INT, BIG, DBL, STR, TIME, DAY)
COLUMNS = {f"{name}{n}": type_ for name, type_ in zip("ibdstyf", TYPES, strict=True) for n in (1, 2)}

UTC = dt.UTC
LEAP = dt.datetime(2000, 2, 29, 12, 34, 56, 789012, UTC)
EDGES: dict[str, tuple] = {
    INT: (None, 0, 1, -1, 2, 7, -7, 100, 2**31 - 1, -(2**31)),
    BIG: (None, 0, 1, -1, 3, -10, 2**31, 2**53, 2**53 + 1, -(2**53) - 1, 2**62, 2**63 - 1, -(2**63), 1_000_000_007),
    DBL: (
        *(None, 0.0, -0.0, 1.0, -1.0, 0.5, 1.5, -1.5, 2.5, -2.5, 0.285, 2.675, -0.001, 1e-5, 123456.789, 1e7, 2.0**53),
        *(9.223372036854774e18, 2.0**63, -(2.0**63), 1e300, -1.7976931348623157e308, 5e-324, 2147483647.5),
        *(float("inf"), float("-inf"), float("nan")),
    ),
    STR: (
        *(
            None,
            "",
            " ",
            "a",
            "A",
            "abc",
            "ABC",
            "Straße",
            "İstanbul",
            "ΑΣ",
            "ς",
            "ŉ",
            "😀",
            "😀a",
            "e\u0301",
            "\uffff",
        ),
        *(
            " pad ",
            "\u00a0x\u3000",
            "\tx\n",
            "it's",
            "C:\\dir",
            "a_b%",
            "12",
            " 12\n",
            "+12",
            "-7",
            "1.5",
            "1e3",
            "0x10",
            "1_000",
        ),
        *(
            "9223372036854775808",
            "-9223372036854775808",
            "2147483648",
            "99999999999999999999",
            "١٢",
            "Infinity",
            "-inf",
        ),
        *(
            "+NaN",
            "nan",
            "1d",
            ".5",
            "5.",
            ".",
            "1e400",
            "true",
            "T",
            " yes ",
            "on",
            "No",
            "0",
            "2026-01-31",
            "2026-1-3",
        ),
        *(
            "2026-02-30",
            "0000-01-01",
            "1969-12-31 23:59:59.999999",
            "2026-01-31T12:00:00Z",
            "2026-01-31 12:00:00+02:00",
        ),
        *("2026-01-31 12:00:00.123456789", "12:00:00", "2026-01-31 24:00:00", "2026-01-31 12", "2026", "epoch", "now"),
        *("0001-01-01 00:00:00", "9999-12-31 23:59", "2026-01-31 12:00-05", "long " * 500, "long " * 801),
    ),
    TIME: (
        *(None, dt.datetime(1970, 1, 1, tzinfo=UTC), dt.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), LEAP),
        *(dt.datetime(1900, 2, 28, 0, 0, 1, tzinfo=UTC), dt.datetime(2025, 12, 31, 23, 59, 59, 999999, UTC)),
        *(dt.datetime(2026, 1, 1, tzinfo=UTC), dt.datetime(1, 1, 1, tzinfo=UTC)),
        dt.datetime(9999, 12, 31, 23, 59, 59, 100000, UTC),
    ),
    DAY: (
        *(
            None,
            dt.date(1970, 1, 1),
            dt.date(1969, 12, 31),
            dt.date(2000, 2, 29),
            dt.date(1, 1, 1),
            dt.date(9999, 12, 31),
        ),
        dt.date(1900, 3, 1),
    ),
    BOOL: (None, True, False),
}
ROWS = len(EDGES[DBL]) ** 2


def rows() -> dict[str, list]:
    """The table: all pairs of the values of a type, but for the many texts."""
    found = {}
    for name, type_ in COLUMNS.items():
        values = EDGES[type_]
        step = 1 if name.endswith("1") else len(values)
        found[name] = [
            values[(n // step + (n if step > 1 and type_ == STR else 0) * 7) % len(values)] for n in range(ROWS)
        ]
    return found
