from __future__ import annotations

import duckdb
import pytest

from towpath.verify.texts import double_text, register

TEXTS = {
    1.0: "1.0",
    -0.0: "0.0",
    0.001: "0.001",
    0.0001: "1.0E-4",
    9999999.5: "9999999.5",
    1e7: "1.0E7",
    -123456789.125: "-1.23456789125E8",
    1e300: "1.0E300",
    5e-324: "4.9E-324",
    float("inf"): "Infinity",
    float("-inf"): "-Infinity",
}


@pytest.mark.parametrize("value", TEXTS)
def test_the_text_of_a_double(value: float) -> None:
    assert double_text(value) == TEXTS[value]


def test_functions_may_be_registered_again() -> None:
    with duckdb.connect() as con:
        register(con)
        register(con)
        (row,) = con.sql("SELECT towpath_upper('ß') AS u, towpath_lower('ΑΣ') AS l").to_arrow_table().to_pylist()
    assert row == {"u": "SS", "l": "ας"}
