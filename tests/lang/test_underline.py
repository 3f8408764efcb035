from __future__ import annotations

import pytest

from towpath.lang.underline import WIDTH, position, underline


@pytest.mark.parametrize(
    ("sql", "place", "expected"),
    [
        ("SELECT x", (7, 8), "SELECT x\n       ^"),
        ("a\n\tbc d\ne", (3, 5), " bc d\n ^^"),
        ("ab\ncd", (1, 5), "ab\n ^"),
        ("ab", (2, 2), "ab\n  ^"),
        ("", (0, 1), ""),
    ],
    ids=["a word", "a tab", "over lines", "behind the end", "nothing"],
)
def test_the_place_is_marked_in_its_line(sql: str, place: tuple[int, int], expected: str) -> None:
    assert underline(sql, place) == expected


def test_a_long_line_is_cut_around_the_mark() -> None:
    sql = "x " * 300 + "HERE" + " y" * 300
    line, marks = underline(sql, (600, 604)).split("\n")
    assert line[marks.index("^") : len(marks)] == "HERE"
    assert len(line) <= WIDTH + 6


def test_lines_and_columns_count_from_one() -> None:
    assert [position("ab\nc", offset) for offset in (0, 1, 3)] == [(1, 1), (1, 2), (2, 1)]
