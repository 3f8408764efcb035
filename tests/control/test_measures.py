from __future__ import annotations

from dataclasses import replace

import pytest

from towpath.control.observe.measures import LEAST_SELECTIVITY, SMOOTHING, WORK, Measures
from towpath.runtime.carriers import BatchDone

SECOND = 1_000_000


def busy(carrier: str) -> bool:
    return False


def resting(carrier: str) -> bool:
    return True


def batch(
    number: int, *, rows: int = 100, seconds: float = 0.5, newest_s: float = 0, state: int = 0, first: bool = False
) -> BatchDone:
    newest = (int(newest_s * SECOND),)
    return BatchDone("c0", number, 1, newest, None, rows, (), state, seconds, {}, first)


def test_busy_share_and_rate_are_of_the_window() -> None:
    measures = Measures()
    measures.hear(batch(0, first=True, seconds=5), 10)
    measures.close_window(10, busy)
    assert measures.carrier("c0") is None  # the first micro-batch says nothing about the others
    for n in range(1, 6):
        measures.hear(batch(n, rows=400, seconds=0.5, state=7), 10 + 2 * n)
    assert measures.close_window(20, busy) == 10
    measured = measures.carrier("c0")
    assert measured is not None
    assert (measured.busy, measured.rows, measured.batch_s, measured.state_rows) == (0.25, 200, 0.5, 7)


def test_windows_are_smoothed() -> None:
    measures = Measures()
    measures.hear(batch(1, seconds=1), 1)
    measures.close_window(10, busy)
    measures.hear(batch(2, seconds=5), 15)
    measures.close_window(20, busy)
    measured = measures.carrier("c0")
    assert measured is not None
    assert measured.busy == pytest.approx((1 - SMOOTHING) * 0.1 + SMOOTHING * 0.5)


def test_a_micro_batch_that_lasts_longer_than_a_window_keeps_its_carrier_busy() -> None:
    measures = Measures()
    measures.hear(batch(1, seconds=10), 10)
    measures.close_window(10, busy)
    measures.close_window(20, busy)
    measures.hear(batch(2, seconds=18), 28)
    measures.close_window(30, busy)
    measured = measures.carrier("c0")
    assert measured is not None
    assert measured.busy == pytest.approx((1 - SMOOTHING) * 1 + SMOOTHING * 18 / 20)


def test_a_window_without_anything_to_read_is_one_of_rest() -> None:
    measures = Measures()
    measures.hear(batch(1, seconds=4), 4)
    measures.close_window(10, busy)
    measures.close_window(20, resting)
    measured = measures.carrier("c0")
    assert measured is not None
    assert (measured.busy, measured.batch_s) == (pytest.approx((1 - SMOOTHING) * 0.4), 4)


def test_delay_grows_when_event_time_falls_behind_the_clock() -> None:
    measures = Measures()
    for n in range(11):
        measures.hear(batch(n, seconds=0.5, newest_s=n * 0.5, first=n == 0), float(n))
    measures.close_window(10, busy)
    measured = measures.carrier("c0")
    assert measured is not None
    assert measured.behind_s == 5
    assert measured.delay_s == 5 + 1 / 2 + 0.5  # a period is a second
    assert measured.pr == measured.delay_s / 0.5


def test_a_carriers_cost_is_split_by_the_rows_that_fragments_emit() -> None:
    measures = Measures()
    measures.hear(batch(1, rows=1000), 1)
    measures.hear(batch(2, rows=1000), 2)
    measures.sampled("c0", [1, 2, 3], {1: {1: 300, 2: 100}, 2: {1: 300, 2: 100}})
    assert (measures.selectivity(1), measures.selectivity(2), measures.selectivity(3)) == (0.3, 0.1, 0)
    shares = measures.shares([1, 2, 3])
    assert sum(shares.values()) == pytest.approx(1)
    assert shares[1] == pytest.approx(3 * shares[2])
    assert shares[3] == pytest.approx(LEAST_SELECTIVITY / (0.4 + LEAST_SELECTIVITY))


def test_micro_batches_of_unknown_size_are_left_out_of_a_sample() -> None:
    measures = Measures()
    measures.hear(batch(5, rows=10), 1)
    measures.sampled("c0", [1], {4: {1: 1000}, 5: {1: 5}})
    assert measures.selectivity(1) == 0.5


def test_what_has_left_is_forgotten() -> None:
    measures = Measures()
    measures.hear(batch(1, rows=10), 1)
    measures.sampled("c0", [1], {1: {1: 5}})
    measures.close_window(2, busy)
    measures.forget(set(), set())
    assert measures.carrier("c0") is None and measures.selectivity(1) == 0


def test_bytes_of_links_are_rates_of_the_window_and_links_that_are_gone_are_forgotten() -> None:
    measures = Measures()
    measures.hear(replace(batch(1), link_bytes={"link_a": 500.0, "link_b": 20.0}), 1)
    measures.hear(replace(batch(2), link_bytes={"link_a": 500.0}), 2)
    measures.close_window(10, busy)
    assert measures.link_rates("c0") == {"link_a": 100.0, "link_b": 2.0}
    measures.hear(replace(batch(3), link_bytes={"link_a": 2000.0}), 12)
    measures.close_window(20, busy)
    assert measures.link_rates("c0") == {"link_a": pytest.approx(100 + SMOOTHING * 100)}


def grown(*works: tuple[int, float]) -> Measures:
    """Windows of ten seconds with a micro-batch each: how many fragments there were, and its seconds of work."""
    measures = Measures()
    for n, (fragments, work_s) in enumerate(works, start=1):
        measures.hear(replace(batch(n, seconds=work_s), phases_ms={WORK: int(1000 * work_s)}), 10 * n - 1)
        measures.sampled("c0", range(fragments), {})
        measures.close_window(10 * n, busy)
    return measures


def test_a_further_fragment_costs_what_the_last_ones_brought() -> None:
    """The carrier takes 0.2 of a core by itself and 0.001 for each fragment: not 0.003, which is the average of 100."""
    measures = grown((50, 2.5), (100, 3.0), (100, 3.0))
    assert measures.further("c0") == pytest.approx(0.001)


@pytest.mark.parametrize("fragments", [(100,), (100, 100, 100), (100, 104, 108)])
def test_nothing_is_known_of_growth_without_it(fragments: tuple[int, ...]) -> None:
    assert grown(*((n, 3.0 + n / 100) for n in fragments)).further("c0") is None


def test_nothing_is_known_of_the_growth_of_a_carrier_without_fragments() -> None:
    assert grown((0, 1.0), (0, 1.0)).further("c0") is None
    assert Measures().further("c0") is None
