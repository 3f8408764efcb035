"""Regular expressions: which are read, and that RE2 (in DuckDB), Rust (in Polars) and Python find the same by them."""

from __future__ import annotations

import re
from random import Random

import duckdb
import polars as pl
import pytest

from towpath.lang.regexps import LONGEST_PATTERN, BadPattern, regexp

LETTERS = ("a", "b", "-", "é", "😀", "\n", "1")
ATOMS = ("a", "b", "-", "é", "😀", ".", "[ab]", "[^a]", "[^-b]", r"\d", r"\W", "[a-b1]", r"\n")
TIMES = ("", "", "", "*", "+", "?", "{2}", "{1,2}", "{2,}")


def pattern(random: Random, depth: int = 2) -> str:
    kind = random.random()
    if depth and kind < 0.15:
        return f"({pattern(random, depth - 1)})" + random.choice(("", "?"))
    if depth and kind < 0.3:
        return f"(?:{pattern(random, depth - 1)}|{pattern(random, depth - 1)})" + random.choice(("", "?"))
    parts = [random.choice(ATOMS) + random.choice(TIMES) for _ in range(random.randint(0, 2))]
    if depth:
        parts.insert(random.randint(0, len(parts)), pattern(random, depth - 1))
    return random.choice(("", "", "^")) + "".join(parts) + random.choice(("", "", "$"))


def texts(random: Random) -> list[str]:
    return ["", *("".join(random.choices(LETTERS, k=random.randint(1, 8))) for _ in range(40))]


def of_python(given: str) -> re.Pattern[str]:
    return re.compile(given.replace("$", r"\Z"), re.ASCII)


def drawn(number: int, seed: int) -> list[str]:
    """Patterns that are read."""
    random, found = Random(seed), []
    while len(found) < number:
        given = pattern(random)
        try:
            regexp(given)
        except BadPattern:
            continue
        found.append(given)
    return found


def test_engines_find_the_same() -> None:
    random, con = Random(3), duckdb.connect()
    for given in drawn(400, seed=1):
        known, python, some = regexp(given), of_python(given), texts(random)
        right = [python.search(text) for text in some]
        column = pl.Series("text", some)
        con.register("texts", column.to_frame().to_arrow())
        groups = [0, *known.always]
        items = ", ".join(f"regexp_extract(text, $p, {group})" for group in groups)
        rows = con.execute(f"SELECT regexp_matches(text, $p), {items} FROM texts", {"p": known.text}).fetchall()
        for n, group in enumerate(groups):
            answers = [None if match is None else match[group] for match in right]
            assert column.str.extract(known.text, group).to_list() == answers, given
            assert [row[1 + n] if row[0] else None for row in rows] == answers, given
        assert min((len(match[0]) for match in right if match), default=known.shortest) >= known.shortest, given


def test_what_is_made_of_a_pattern_by_hand() -> None:
    known = regexp(r"^(&|a.)x=([^&]{1,3})\d*$")
    assert known.text == r"(?:\A(\x{26}|a[^\x{A}])x\x{3D}([^\x{26}]{1,3})[0-9]*\z)"
    assert (known.groups, known.always, known.shortest) == (2, {1, 2}, 4)
    assert known.first == known.text
    assert regexp("((?:[a-c]+)x)y").first == r"(?<![a-c])(?:((?:[a-c]+)x)y)"
    assert regexp("(a)|(b)?").always == frozenset()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("a.*b.*c", "may take too long"),
        ("[a-z]*[a-m]*x", "may take too long"),
        ("(a+)+b", "a group is repeated"),
        ("(a|b){2}", "a group is repeated"),
        ("a*?", "and the like are not supported"),
        ("a++", "and the like are not supported"),
        ("a**", "and the like are not supported"),
        ("(?i)a", "(? is supported as (?: alone"),
        ("(?<name>a)", "(? is supported as (?: alone"),
        ("(?=a)", "(? is supported as (?: alone"),
        (r"(a)\1", r"\1 is not supported"),
        (r"\s", r"\s is not supported"),
        (r"\ba", r"\b is not supported"),
        (r"\p{L}", r"\p is not supported"),
        (r"\\", r"\\ is not supported"),
        ("[[:alpha:]]", "differently in a class"),
        ("[a&&b]", "differently in a class"),
        ("[]a]", "a class that begins with ]"),
        ("[z-a]", "a range in a class"),
        (r"[a-\d]", "a range in a class"),
        ("[é]", "ASCII alone"),
        (r"[\W]", "ASCII alone"),
        ("[a", "ends too early"),
        ("a\\", "ends too early"),
        ("(a", "is not closed"),
        ("a)", "closes nothing"),
        ("*a", "has nothing to repeat"),
        ("^*", "cannot be repeated"),
        ("a{101}", "{ is followed by"),
        ("a{2,1}", "{ is followed by"),
        ("a{0}", "{ is followed by"),
        ("a{,2}", "{ is followed by"),
        ("a{", "{ is followed by"),
        ("a{100}" * 6, "too many repetitions"),
        ("(a|b|c)" * 5, "too many repetitions or alternatives"),
        ("a" * (LONGEST_PATTERN + 1), "at most 500"),
    ],
)
def test_what_is_not_read_is_refused_with_the_reason(given: str, message: str) -> None:
    with pytest.raises(BadPattern) as caught:
        regexp(given)
    assert message in caught.value.message
