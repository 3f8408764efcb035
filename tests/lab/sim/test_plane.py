from __future__ import annotations

from collections.abc import Callable

import pytest

from lab.sim.cases import pair, spread
from towpath.lab.sim.plane import DataPlane
from towpath.lab.sim.sources import Profile

A, B = 0, 1


@pytest.mark.parametrize(
    "ask",
    [lambda p: p.work(A, 0.0), lambda p: p.follow(A, A), lambda p: p.follow(A, B), lambda p: p.flag(A, B)],
    ids=["work", "follow at home", "follow", "flag"],
)
def test_an_errand_for_which_the_tables_grow(ask: Callable[[DataPlane], int]) -> None:
    """They are copied then, and what is written into those of before is lost."""
    plane = DataPlane(pair(), spread(), Profile(steps=((0.0, 0.0),)), "fixed", 1, {}, 1.0)
    before = len(plane.t.parcels)
    plane.t.clock[0].unused = 0
    errand = ask(plane)
    assert len(plane.t.parcels) > before
    assert plane.advance(10.0) == [errand]
