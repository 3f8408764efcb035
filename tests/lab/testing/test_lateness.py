"""The model of what is late, by hand, and the product's own arithmetic against it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from towpath.lab.testing.lateness import Lateness, ModelFeed
from towpath.schema import in_time_from, newest_before

SECOND = 1_000_000
TIMES = st.integers(-(10**7), 10**7)
DELAYS = st.integers(0, 5000)


def test_the_bound_is_in_time() -> None:
    model = Lateness(3 * SECOND)
    assert model.take([10 * SECOND, 0]) == [[True, True]], "within a micro-batch nothing is late"
    assert model.take([7 * SECOND, 7 * SECOND - 1, 12 * SECOND]) == [[True, False, True]]
    assert model.take([9 * SECOND, 8 * SECOND]) == [[True, False]]


def test_with_delay_0_the_newest_time_is_in_time() -> None:
    model = Lateness(0)
    model.take([SECOND + 1_500])
    assert model.take([SECOND + 1_500, SECOND + 1_000, SECOND + 999]) == [[True, True, False]], "to the millisecond"


def test_a_join_goes_by_its_slowest_input() -> None:
    model = Lateness(0, SECOND)
    model.take([10 * SECOND], [])
    assert model.take([SECOND], [5 * SECOND]) == [[True], [True]], "the second input has had nothing before"
    assert model.cut_us == 4 * SECOND
    assert model.take([4 * SECOND, 3 * SECOND], [4 * SECOND]) == [[True, False], [True]]


def test_a_feed_waits_for_all_its_streams() -> None:
    feed = ModelFeed(["a", "b"])
    assert feed.take({"a": [5, 9]}) == {"a": [], "b": []}
    assert feed.take({"b": [6]}) == {"a": [5], "b": [6]}
    assert feed.take({"a": [2]}) == {"a": [2], "b": []}
    assert feed.take({}, drained=True) == {"a": [9], "b": []}


@given(TIMES, TIMES, DELAYS)
def test_carriers_and_controller_draw_the_line_where_the_model_does(newest: int, event: int, delay: int) -> None:
    model = Lateness(delay)
    model.take([newest])
    ((in_time,),) = model.take([event])
    assert in_time == (event >= in_time_from(newest, delay)) == (newest <= newest_before(event, delay))
    assert in_time or event < newest - delay, "what is `delay` behind or less is in time"
