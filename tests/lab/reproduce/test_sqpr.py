from __future__ import annotations

from towpath.lab.reproduce.sqpr.setting import SHARE, SqprCase, SqprSize, measure, simulated

SIZE = SqprSize(3, 12)


def test_cpu_and_bandwidth_both_bind() -> None:
    system = simulated(SIZE, 1)
    both = measure(SqprCase(system, "heuristic"))
    assert both.last < len(system.requests)
    assert measure(SqprCase(system, "bound")).last >= measure(SqprCase(system, "sqpr")).last
    assert both.last >= SHARE * len(system.requests) / 2


def test_batches_admit_as_a_whole_or_in_part() -> None:
    seen = measure(SqprCase(simulated(SIZE, 1), "sqpr", batch=4))
    assert len(seen.admitted) == SIZE.queries
    assert all(later >= earlier for earlier, later in zip(seen.admitted, seen.admitted[1:], strict=False))
    assert sum(seen.statuses.values()) == SIZE.queries / 4
