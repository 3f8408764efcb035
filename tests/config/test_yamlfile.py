"""What a text of YAML may not stand for: refused at once, with its place, whoever reads it."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from towpath import job, problems
from towpath.config import yamlfile
from towpath.errors import ProblemsError

JOB = "streams: {s: {source: {type: rate, rate: RATE}}}\nqueries: {q: SELECT value FROM s}\n"
LETTERS = "abcdefghi"


def bomb(first: str, line: str) -> str:
    """Each line names the one before it nine times."""
    lines = [line.format(name=b, before=", ".join([f"*{a}"] * 9)) for a, b in pairwise(LETTERS)]
    return "\n".join([f"a: &a {first}", *lines])


DEEP = "is nested more than 100 levels deep"
ALIASES = "has aliases that stand for more than 100,000 values"
CASES = {
    "a bomb of lists": (bomb("[x]", "{name}: &{name} [{before}]"), f"line 1, column 1: {ALIASES}"),
    "a bomb of merged keys": (bomb("{x: 1}", "{name}: &{name} {{<<: [{before}]}}"), f"line 1, column 1: {ALIASES}"),
    "open brackets": ("streams: " + "[" * 50_000, f"line 1, column 109: {DEEP}"),
    "brackets": ("streams: " + "[" * 3_000 + "]" * 3_000, f"line 1, column 109: {DEEP}"),
    "braces": ("streams: " + "{a: " * 3_000 + "}" * 3_000, f"line 1, column 406: {DEEP}"),
    "dashes": ("- " * 20_000, f"line 1, column 201: {DEEP}"),
    "keys in keys": ("? " * 20_000, f"line 1, column 201: {DEEP}"),
    "lines": ("".join(" " * n + "a:\n" for n in range(300)), f"line 101, column 101: {DEEP}"),
    "an alias in its own keys": ("streams: &a {s: *a}", "line 1, column 10: has an alias for this in it"),
    "an alias in its own list": ("streams: &a [*a]", "line 1, column 10: has an alias for this in it"),
    "an alias merged into itself": ("streams: &a {<<: *a}", "line 1, column 10: has an alias for this in it"),
    "400 digits": (
        JOB.replace("RATE", "1" * 400),
        "rate: expected a number of at most 40 digits, got one of 400",
    ),
    "5000 digits": (JOB.replace("RATE", "-" + "1" * 5_000), "at most 40 digits, got one of 5001 in line 1"),
    "no truth": ("streams: !!bool x", "is not valid YAML: 'x'"),
}


@pytest.mark.parametrize(("text", "said"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("load", [job.load, problems.load], ids=["job", "problem"])
def test_what_a_short_text_may_not_stand_for(tmp_path: Path, load: object, text: str, said: str) -> None:
    assert callable(load)
    file = tmp_path / "file.yaml"
    file.write_text(text)
    with pytest.raises(ProblemsError) as refused:
        load(file)
    assert said in str(refused.value)


def test_aliases_that_people_write_are_fine(tmp_path: Path) -> None:
    file = tmp_path / "file.yaml"
    file.write_text(
        "streams: {s: &s {source: {type: rate, rate: 1}}, t: *s, u: {<<: *s, delay: 1 second}}\nqueries: {}"
    )
    assert list(job.load(file).streams) == ["s", "t", "u"]


def test_a_file_that_is_huge_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    with file.open("wb") as sparse:
        sparse.truncate(10_000_000_000)
    for load, most in ((job.load, yamlfile.MOST_BYTES), (problems.load, yamlfile.MOST_BYTES_WITH_LINES)):
        with pytest.raises(ProblemsError, match=f"has more than {most:,} bytes"):
            load(file)


def test_a_rate_that_no_machine_counts_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(JOB.replace("RATE", "1" * 39))
    with pytest.raises(ProblemsError, match=r"streams\.s\.source\.rate: expected at most 9\.22337e\+18"):
        job.load(file)
