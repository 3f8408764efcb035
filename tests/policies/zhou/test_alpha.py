from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from towpath.policies.zhou import Options
from towpath.policies.zhou.workload import estimate_after, lower_bound, smoothed


def test_the_papers_example() -> None:
    """2 - alpha^2 <= 1.2; the paper rounds the bound to 0.9."""
    assert lower_bound(1, 1, 2, 1.2) == pytest.approx(0.8**0.5)
    assert round(lower_bound(1, 1, 2, 1.2), 3) == 0.894
    assert Options().smoothing == lower_bound(1, 1, 2, 1.2)


def test_a_fluctuation_below_kappa_needs_no_smoothing() -> None:
    assert lower_bound(1, 1, 1.1, 1.2) == 0


@given(st.integers(1, 8), st.integers(1, 8), st.floats(1.0, 5.0), st.floats(0.0, 1.0))
def test_the_formula_is_what_the_filter_does(m1: int, m2: int, growth: float, alpha: float) -> None:
    rho = 1.0
    collected = [1 + (growth - 1) * i / m1 for i in range(1, m1 + 1)] + [growth] * m2
    for value in collected:
        rho = smoothed(rho, value, alpha)
    assert estimate_after(alpha, m1, m2, growth) == pytest.approx(rho)


@given(st.integers(1, 8), st.integers(1, 8), st.floats(1.3, 5.0), st.floats(1.01, 1.29))
def test_the_bound_is_the_smallest(m1: int, m2: int, growth: float, kappa: float) -> None:
    alpha = lower_bound(m1, m2, growth, kappa)
    assert estimate_after(alpha, m1, m2, growth) == pytest.approx(kappa)
    assert estimate_after(alpha - 0.001, m1, m2, growth) > kappa


@given(st.integers(1, 8), st.integers(1, 8), st.floats(1.3, 5.0), st.floats(1.01, 1.29))
def test_the_bound_is_the_root_that_scipy_finds(m1: int, m2: int, growth: float, kappa: float) -> None:
    root = brentq(lambda alpha: estimate_after(alpha, m1, m2, growth) - kappa, 0.0, 1.0, xtol=1e-15)
    assert lower_bound(m1, m2, growth, kappa) == pytest.approx(root, rel=0, abs=1e-9)
