from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from results.logs import Row, write_batch
from towpath.api.figures import BOUNDS_S
from towpath.api.monitor import Monitor
from towpath.control.decide.controller import Controller
from towpath.control.state.records import CarrierRecord, FragmentRecord, FragmentStatus, PartRecord, QueryRecord, State
from towpath.lab.demo.market import Market
from towpath.lang import parse
from towpath.plan.build import build, optimise
from towpath.plan.pipeline import pipelines
from towpath.plan.serial import dump_pipeline
from towpath.plan.templates import template_of
from towpath.runtime.carriers import BatchDone, CarrierFailed
from towpath.store.layout import Store

CATALOG = Market.of(20, 10).job(Path("store"), 2).catalog


def batch(number: int, rows: int = 100, seconds: float = 1.0, first: bool = False) -> BatchDone:
    return BatchDone("c0", number, 1, (), None, rows, (), 0, seconds, {}, first)


@pytest.fixture
def state() -> State:
    plan = optimise(build(parse("SELECT price FROM bids WHERE price > 5", CATALOG, "q")), CATALOG)
    (pipeline,) = pipelines(plan, CATALOG)
    template, text = template_of(pipeline), dump_pipeline(pipeline)
    columns = (("price", "c_i0_price"),)
    return State(
        carriers={"c0": CarrierRecord("c0", "local", template, 0, 1, late=({"bids": 3}, {"bids": 2}))},
        fragments={
            n: FragmentRecord(n, str(n), "c0", text, 0, 0, status) for n, status in enumerate(FragmentStatus, start=1)
        },
        queries={n: QueryRecord(n, f"q{n}", "", running=n != 4) for n in (1, 2, 3, 4)},
        # q1 and q2 share a fragment; the fragments of the others are leaving or gone.
        parts={(n, 0, 0): PartRecord(n, 0, 0, f, columns, False) for n, f in ((1, 2), (2, 2), (3, 3), (4, 4))},
    )


@pytest.fixture
def clock() -> list[float]:
    return [0.0]


@pytest.fixture
def monitor(tmp_path: Path, state: State, clock: list[float]) -> Monitor:
    return Monitor(Controller(state, CATALOG), Store(tmp_path), lambda: clock[0])


def test_fragments_and_their_queries_are_counted(monitor: Monitor) -> None:
    (carrier,) = monitor.figures().carriers
    assert (carrier.kind, carrier.fragments, carrier.queries, carrier.late) == ("filter", 2, 2, 3)
    assert monitor.figures().queries == 3


def test_rates_are_of_the_last_seconds(monitor: Monitor, clock: list[float]) -> None:
    rates = []
    for second in range(30):
        clock[0] = float(second)
        monitor.hear([batch(second, rows=100 if second < 15 else 0)])
        rates.append(monitor.figures().rows_per_s)
    assert rates[0] == 0
    assert rates[10] == 100
    assert rates[29] == 0


def test_the_first_trigger_of_a_carrier_says_nothing_about_the_others(monitor: Monitor) -> None:
    assert monitor.figures().trigger_s is None
    monitor.hear([batch(0, seconds=60, first=True), *(batch(n, seconds=1.5) for n in range(1, 5))])
    figures = monitor.figures()
    assert (figures.trigger_s, figures.slowest_s, figures.carriers[0].trigger_s) == (1.5, 1.5, 1.5)


def test_restarts_are_counted(monitor: Monitor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Controller, "runs", lambda *_: True)
    monitor.hear([batch(0, first=True), batch(1), CarrierFailed("c0", "gone")])
    assert monitor.figures().restarts == 0
    monitor.hear([batch(2, first=True)])
    assert monitor.figures().restarts == 1


def test_a_carrier_that_rested_did_not_have_to_be_started_again(
    monitor: Monitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [True]
    monkeypatch.setattr(Controller, "runs", lambda *_: runs[0])
    monitor.hear([batch(0, first=True)])
    for runs[0] in (True, False, True):
        assert monitor.figures().restarts == 0
    monitor.hear([batch(1, first=True)])
    assert monitor.figures().restarts == 0
    monitor.hear([batch(2, first=True)])
    assert monitor.figures().restarts == 1


def test_results_are_counted_when_they_are_committed(monitor: Monitor, tmp_path: Path) -> None:
    root = Store(tmp_path).results("c0")
    write_batch(root, 0, [Row(1, 1, 1), Row(1, 2, 2)])
    assert monitor.figures().results == 2
    write_batch(root, 1, [Row(2, 3, 3)])
    write_batch(root, 2, [Row(2, 4, 4)], committed=False)
    assert monitor.figures().results == 3


def test_what_a_query_costs(monitor: Monitor, tmp_path: Path) -> None:
    """Fragment 2 puts out 30 rows in two micro-batches of 200 rows, fragment 1 ten; q1 and q2 share fragment 2."""
    log = Store(tmp_path).results("c0")
    write_batch(log, 0, [Row(2, n, n, n) for n in range(10)] + [Row(1, n, n, n) for n in range(10)])
    write_batch(log, 1, [Row(2, n, n, n) for n in range(20)])
    monitor.hear([replace(batch(0), state_rows=7), replace(batch(1, seconds=2.0), state_rows=8)])
    monitor._controller.state.carriers["c0"].last = 1
    monitor._controller.known.begin_run(monitor._controller.state.carriers["c0"])
    first, second, *others = monitor.costs()
    assert (first.name, first.carriers, first.nodes, first.shared_with) == ("q1", ["c0 (filter)"], ["local"], 1)
    assert first.rows_per_trigger == 15
    assert first.estimated_share_of_carrier == pytest.approx(0.75)
    assert first.estimated_state_rows == pytest.approx(8 * 0.75)
    assert first.estimated_seconds_per_trigger == pytest.approx(2.0 * 0.75)
    assert replace(second, name="q1") == first
    assert all(cost.rows_per_trigger == 0 and not cost.carriers for cost in others)


def test_durations_are_counted_by_their_bounds(monitor: Monitor) -> None:
    monitor.hear([batch(n, seconds=seconds) for n, seconds in enumerate([0.1, 0.11, 1.0, 1.5, 2.0, 100.0])])
    durations = monitor.durations()
    assert dict(zip((*BOUNDS_S, "more"), durations.counts, strict=True)) == {
        0.1: 1, 0.25: 1, 0.5: 0, 1.0: 1, 2.0: 2, 5.0: 0, 10.0: 0, 30.0: 0, 60.0: 0, "more": 1,
    }  # fmt: skip
    assert durations.sum_s == pytest.approx(104.71)
