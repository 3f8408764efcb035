from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from towpath.lab.reproduce import runs
from towpath.lab.reproduce.runs import Kept
from towpath.lab.reproduce.sqpr.setting import SHARE, SqprCase, SqprSize, _Sqpr, measure, simulated
from towpath.reuse.system import StreamRequest

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


def test_a_run_that_was_stopped_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped after 5 queries; what is planned after that is what an undisturbed run plans."""
    monkeypatch.setattr(runs, "KEEP_EVERY_S", 0.0)
    whole = SqprCase(simulated(SIZE, 1), "sqpr", beside=True)
    case = replace(whole, kept=tmp_path / "run.pickle")
    submitted = []

    def stopped(planner: _Sqpr, group: Sequence[StreamRequest]) -> int:
        submitted.append(group)
        if len(submitted) == 6:
            raise KeyboardInterrupt
        return usual(planner, group)

    usual = _Sqpr.submit
    with monkeypatch.context() as patched:
        patched.setattr(_Sqpr, "submit", stopped)
        with pytest.raises(KeyboardInterrupt):
            measure(case)
    assert len(Kept(case.kept).load()[1].admitted) == 5
    begun, undisturbed = measure(case), measure(whole)
    assert begun.admitted == undisturbed.admitted
    assert begun.statuses == undisturbed.statuses
