"""Whatever the text, the answer is a query or a QueryError; and a query that is printed reads back as itself."""

from __future__ import annotations

import yaml
from hypothesis import given
from hypothesis import strategies as st

from towpath.errors import QueryError
from towpath.lang import parse, to_sql

from .cases import DATA, catalog, load

CATALOG = catalog()
OTHER_DIALECTS = [case["sql"] for case in yaml.safe_load((DATA / "dialects.yaml").read_text())]
TEXTS = [*(case.sql for case in load("*valid*.yaml")), *OTHER_DIALECTS]
WORDS = sorted({word for sql in TEXTS for word in sql.replace("(", " ( ").replace(")", " ) ").split()})


def check(text: str) -> None:
    try:
        query = parse(text, CATALOG)
    except QueryError as error:
        assert error.problems
    else:
        assert parse(to_sql(query), CATALOG).selects == query.selects


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A known text with a few words taken out, put in, or exchanged."""
    words = draw(st.sampled_from(TEXTS)).split(" ")
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(words)))
        length = draw(st.integers(0, 2))
        words[at : at + length] = draw(st.lists(st.sampled_from(WORDS), max_size=2))
    return " ".join(words)


@given(st.text())
def test_any_text(text: str) -> None:
    check(text)


@given(st.text(alphabet="SELECTFROM'\"`()[],;:?@$#{}%*+-/\\|&<>=!.~^ \n\t0x9eéß", max_size=40))
def test_any_text_behind_select(text: str) -> None:
    check(f"SELECT price FROM bids WHERE {text}")


@given(st.lists(st.sampled_from(WORDS), max_size=12))
def test_any_words(words: list[str]) -> None:
    check(f"SELECT {' '.join(words)}")


@given(mutated())
def test_mutated_queries(text: str) -> None:
    check(text)
