from __future__ import annotations

import duckdb
import pytest

from towpath.streams.timeformat import _KNOWN, time_format_fault


@pytest.mark.parametrize(
    "format_", ["%d.%m.%Y %H:%M:%S", "%Y%m%dT%H%M%S%z", "%b %-d, %Y %I:%M %p", "%d/%m/%y %H:%M:%S.%f %%"]
)
def test_formats_that_name_a_day(format_: str) -> None:
    assert time_format_fault(format_) is None


@pytest.mark.parametrize(
    ("format_", "said"),
    [
        ("%H:%M", "it needs a year"),
        ("", "it needs a year"),
        ("%Y-%m", "a day"),
        ("%Y-%m-%d %Q", "%Q stands for nothing"),
        ("%Y-%m-%d %", "% stands for nothing"),
    ],
)
def test_formats_that_are_none(format_: str, said: str) -> None:
    assert said in (time_format_fault(format_) or "")


def test_duckdb_knows_all_places() -> None:
    for place in _KNOWN:
        duckdb.execute("SELECT try_strptime('x', ?)", [f"%{place}"])
