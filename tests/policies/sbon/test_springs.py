from __future__ import annotations

import pytest

from towpath.policies.sbon.springs import Pull, at_rest, usage


def pull(rate: float, *at: float, inward: bool = True, shared: bool = False) -> Pull:
    return Pull(rate, at, at, inward, shared)


def test_a_body_comes_to_rest_at_the_mean_of_its_neighbours_weighted_by_rate() -> None:
    rest = at_rest((0.0, 0.0, 0.0), [pull(3000.0, 0.4, 0.0, 0.0), pull(1000.0, 0.0, 0.8, 0.0)], 0.1, 1e-6)
    assert rest == pytest.approx((0.3, 0.2, 0.0), abs=1e-6)


def test_fast_streams_do_not_make_it_diverge() -> None:
    rest = at_rest((5.0,), [pull(1e9, 0.1), pull(1e9, 0.3)], 0.1, 1.0)
    assert rest == pytest.approx((0.2,), abs=1e-6)


def test_it_stops_where_the_force_is_below_the_threshold() -> None:
    """100 B/s over 9 ms is a force of 0.9."""
    assert at_rest((0.009,), [pull(100.0, 0.0)], 0.1, 1.0) == (0.009,)
    assert at_rest((0.1,), [pull(100.0, 0.0)], 0.1, 1.0)[0] < 0.01


def test_nobody_pulls_at_it() -> None:
    assert at_rest((1.0, 2.0), [], 0.1, 1.0) == (1.0, 2.0)


def test_usage_is_rate_times_the_length_of_links() -> None:
    assert usage([pull(200.0, 0.03, 0.04), pull(50.0, 0.0, 0.1, inward=False)], (0.0, 0.0), 0.0) == pytest.approx(15.0)


def test_load_makes_links_longer_and_a_shared_one_counts_by_load_alone() -> None:
    assert usage([pull(100.0, 0.03)], (0.0,), 0.04) == pytest.approx(5.0)
    assert usage([pull(100.0, 0.03, shared=True)], (0.0,), 0.04) == pytest.approx(4.0)
