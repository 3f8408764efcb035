"""What a node knows of its own load, and how strongly it smoothes that (Zhou et al., section 3.3)."""

from __future__ import annotations

from collections.abc import Mapping

from towpath.placement.statistics import OperatorStatistics


class NodeLoad:
    """rho of one node: smoothed, and announced to the partners when it has changed enough.

    What is on its way counts where it goes: a fragment leaves an overloaded node only after all that waits there before
    it, and a node that looks busy until then would be asked again and again for load that it has already given.
    """

    def __init__(self, alpha: float, kappa: float) -> None:
        self._alpha = alpha
        self._kappa = kappa
        self._announced = 0.0
        self._measured: float | None = None
        self._leaving: dict[str, float] = {}  # load by fragment
        self._coming: dict[str, tuple[str, float]] = {}  # from where, and its load

    @property
    def rho(self) -> float:
        coming = sum(load for _, load in self._coming.values())
        return max((self._measured or 0.0) + coming - sum(self._leaving.values()), 0.0)

    def collect(self, collected: float) -> None:
        # rho_(i+1) = alpha rho_i + (1 - alpha) rho_c; the first window has nothing to be smoothed with
        before = self._measured
        self._measured = collected if before is None else smoothed(before, collected, self._alpha)

    def is_leaving(self, fragment: str) -> bool:
        return fragment in self._leaving

    def leaves(self, fragment: str, load: float) -> None:
        self._leaving[fragment] = load

    def stays(self, fragment: str) -> None:
        self._leaving.pop(fragment, None)

    def left(self, fragment: str) -> None:
        self._shift(-self._leaving.pop(fragment, 0.0))

    def expect(self, fragment: str, sender: str, load: float) -> None:
        self._coming[fragment] = (sender, load)

    def came(self, fragment: str) -> None:
        _, load = self._coming.pop(fragment, ("", 0.0))
        self._shift(load)

    def lost(self, sender: str) -> None:
        """What was to come from there is not awaited any more."""
        self._coming = {f: (node, load) for f, (node, load) in self._coming.items() if node != sender}

    def news(self) -> float | None:
        """The workload if it shall be broadcast now, which then counts as done."""
        rho = self.rho
        if rho == self._announced or self._announced / self._kappa < rho < self._announced * self._kappa:
            return None
        self._announced = rho
        return rho

    def _shift(self, load: float) -> None:
        """At once: the filter would need many windows to show it."""
        self._measured = max((self._measured or 0.0) + load, 0.0)


class OperatorLoads:
    """The smoothed load and the state of each operator that was measured on a node."""

    def __init__(self, alpha: float, cpu: float) -> None:
        self._alpha = alpha
        self._cpu = cpu
        self._load: dict[str, float] = {}
        self._state: dict[str, float] = {}

    def collect(self, measured: Mapping[str, OperatorStatistics]) -> None:
        alpha, cpu, load = self._alpha, self._cpu, self._load
        for name, seen in measured.items():
            collected = seen.rate * seen.cost / cpu
            load[name] = smoothed(load[name], collected, alpha) if name in load else collected
            self._state[name] = seen.state_bytes

    def load(self, operator: str) -> float:
        return self._load.get(operator, 0.0)

    def state_bytes(self, operator: str) -> float:
        return self._state.get(operator, 0.0)

    def put(self, operator: str, load: float, state_bytes: float) -> None:
        self._load[operator] = load
        self._state[operator] = state_bytes

    def drop(self, operator: str) -> None:
        self._load.pop(operator, None)
        self._state.pop(operator, None)


def smoothed(before: float, collected: float, alpha: float) -> float:
    return alpha * before + (1 - alpha) * collected


# --- alpha: no fluctuation shall be noticed that grows within m1 windows from rho_0 to `growth` (the paper's l) times
# that, and stays there for m2 windows


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
