"""Whatever waits, portions get to the end of it, and each is as large as it may be."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from towpath.streams.portions import Pending, until_us

BEGINNING_US = -(2**62)


@st.composite
def pendings(draw: st.DrawFn) -> Pending:
    oldest = draw(st.integers(0, 1_000))
    return Pending(oldest, oldest + draw(st.integers(0, 500)), draw(st.integers(1, 1_000)), BEGINNING_US)


@given(st.lists(pendings(), min_size=1, max_size=8), st.integers(1, 500))
def test_portions_get_to_the_end(waiting: list[Pending], most: int) -> None:
    frontier, released = max(p.newest_us for p in waiting), BEGINNING_US
    while released < frontier:
        reached = until_us([p._replace(after_us=released) for p in waiting], released, frontier, most)
        assert released < reached <= frontier
        released = reached


def test_rows_are_counted_by_the_share_of_their_span() -> None:
    waiting = [Pending(0, 99, 100, BEGINNING_US), Pending(50, 149, 100, BEGINNING_US)]
    assert until_us(waiting, BEGINNING_US, 149, 60) == 54  # 55 of the one, 5 of the other
    assert until_us([p._replace(after_us=54) for p in waiting], 54, 149, 60) == 84
    assert until_us(waiting, BEGINNING_US, 149, 200) == 149


def test_what_cannot_be_divided_comes_at_once() -> None:
    instant = [Pending(7, 7, 1_000, BEGINNING_US)]
    assert until_us(instant, BEGINNING_US, 7, 10) == 7
    assert until_us([Pending(7, 8, 1_000, 6)], 6, 8, 10) == 7
