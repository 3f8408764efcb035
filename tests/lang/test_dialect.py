from __future__ import annotations

import pytest
from sqlglot import parse_one

from towpath.lang.dialect import TowpathDialect
from towpath.lang.query import duration


@pytest.mark.parametrize(
    ("sql", "printed"),
    [
        ("SELECT x FROM a [range 2 minutes]", "SELECT x FROM a [RANGE 2 MINUTES]"),
        ("SELECT x FROM a [RANGE 120 SECONDS] AS b", "SELECT x FROM a AS b [RANGE 2 MINUTES]"),
        ("SELECT x FROM a b [RANGE 1 hour SLIDE 500 ms]", "SELECT x FROM a AS b [RANGE 1 HOUR SLIDE 500 MILLISECONDS]"),
        ("SELECT x FROM a [RANGE 1 DAY SLIDE 24 HOURS]", "SELECT x FROM a [RANGE 1 DAY]"),
        (
            "SELECT x FROM (SELECT x FROM a) [RANGE 1 SECOND] j, b [RANGE 1 SECOND]",
            "SELECT x FROM (SELECT x FROM a) AS j [RANGE 1 SECOND], b [RANGE 1 SECOND]",
        ),
        ("SELECT x FROM a JOIN b [RANGE 1 DAY] ON y = z", "SELECT x FROM a JOIN b [RANGE 1 DAY] ON y = z"),
    ],
)
def test_windows_are_read_and_printed(sql: str, printed: str) -> None:
    assert parse_one(sql, read=TowpathDialect).sql(TowpathDialect) == printed


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [(1_000, "1 MILLISECOND"), (1_500_000, "1500 MILLISECONDS"), (90_000_000, "90 SECONDS"), (86_400_000_000, "1 DAY")],
)
def test_a_duration_is_written_in_its_largest_unit(microseconds: int, text: str) -> None:
    assert duration(microseconds) == text
