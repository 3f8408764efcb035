"""How strongly a workload is smoothed, from the fluctuations that shall not be noticed (Zhou et al., section 3.3).

The fluctuation: from rho_0 the workload grows evenly to `growth` (the paper's l) times rho_0 within m1 windows, and
stays there for m2 windows.
"""

from __future__ import annotations


def estimate_after(alpha: float, m1: int, m2: int, growth: float) -> float:
    """rho_(m1+m2) / rho_0, the smoothed workload at the end of the fluctuation."""
    # (alpha^(m1+1) - 1) / (1 - alpha), written as the sum that it is, so that alpha may be 1
    series = -sum(alpha**i for i in range(m1 + 1))
    rising = alpha**m2 * (growth - 1) / m1 * (m1 + 1 + series)
    return alpha**m2 + rising + (1 - alpha**m2) * growth


def lower_bound(m1: int, m2: int, growth: float, kappa: float) -> float:
    """The smallest alpha with rho_(m1+m2) <= kappa rho_0."""
    if growth <= kappa:
        return 0.0
    # The estimate falls as alpha grows, so halving finds it, down to two numbers with none between them.
    low, high = 0.0, 1.0
    while low < (middle := (low + high) / 2) < high:
        if estimate_after(middle, m1, m2, growth) > kappa:
            low = middle
        else:
            high = middle
    return high
