"""Decisions one by one: what is asked of the carriers, and for which event times a query answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from towpath.config.settings import BEGINNING, NOW, Start
from towpath.control.decide.controller import Controller, PublishTable, StartCarrier
from towpath.control.journal.answers import read_parts
from towpath.control.state.history import EventKind
from towpath.control.state.records import BEGINNING_US, FragmentStatus, State
from towpath.store.layout import Store

from .world import CATALOG, DELAY, SECOND, World, batch_done, losses, stream, submission

EVERYTHING = (True, None, None)
UNDECIDED = (False, None, None)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "journal.sqlite")


def s(*seconds: float) -> list[int]:
    return [int(t * SECOND) for t in seconds]


def run_first(world: World, kind: str = "other filter") -> None:
    """A carrier with a query of another stream, and a batch behind it."""
    world.submit(submission("first", kind))
    world.batch("c0", s(10, 12))


# --- coming ----------------------------------------------------------------------------------------------------------


def test_a_new_shape_starts_a_carrier_with_its_table_published_before() -> None:
    controller = Controller(State(), CATALOG)
    assert controller.queries.submit([submission("q", "filter")]) == [PublishTable("c0"), StartCarrier("c0")]
    assert [row["_fragment"] for row in controller.known.rows("c0")] == [1]


def test_a_known_shape_is_a_row_more() -> None:
    controller = Controller(State(), CATALOG)
    controller.queries.submit([submission("q", "filter")])
    assert controller.queries.submit([submission("r", "other filter")]) == [PublishTable("c0")]
    assert [row["_fragment"] for row in controller.known.rows("c0")] == [1, 2]


def test_queries_that_come_together_share_a_carrier() -> None:
    controller = Controller(State(), CATALOG)
    together = [submission("q", "filter"), submission("r", "computed"), submission("w", "window")]
    assert controller.queries.submit(together) == [
        PublishTable("c0"),
        PublishTable("c1"),
        StartCarrier("c0"),
        StartCarrier("c1"),
    ]


def test_a_wider_carrier_starts_beside_the_one_that_runs() -> None:
    controller = Controller(State(), CATALOG)
    controller.queries.submit([submission("q", "filter")])
    assert controller.queries.submit([submission("r", "computed")]) == [PublishTable("c1"), StartCarrier("c1")]
    old, new = (c.template for c in controller.state.carriers.values())
    assert new.covers(old)


def test_the_same_question_is_asked_once() -> None:
    controller = Controller(State(), CATALOG)
    controller.queries.submit([submission("q", "filter")])
    assert controller.queries.submit([submission("r", "same filter")]) == []
    assert len(controller.state.fragments) == 1


def test_a_union_has_a_part_for_each_select(world: World) -> None:
    world.submit(submission("q", "union"))
    assert [part.branch for part in world.parts("q")] == [0, 1]
    assert len({part.fragment for part in world.parts("q")}) == 2


def test_an_unknown_query_is_no_reason_to_do_anything() -> None:
    assert Controller(State(), CATALOG).queries.withdraw("nobody") == []


# --- from ------------------------------------------------------------------------------------------------------------


def test_what_a_carrier_starts_with_answers_for_everything(world: World) -> None:
    world.submit(submission("q", "filter"))
    assert world.validity("q") == EVERYTHING


def test_a_late_joiner_answers_from_the_batch_that_saw_it(world: World) -> None:
    run_first(world)
    world.submit(submission("q", "filter", start=NOW))
    assert world.validity("q") == UNDECIDED
    world.batch("c0", s(11, 14))
    assert world.validity("q") == (True, 12 * SECOND + 1, None)


def test_a_batch_with_the_old_table_confirms_nothing(world: World) -> None:
    run_first(world)
    carrier = world.carriers["c0"]
    world.submit(submission("q", "filter", start=NOW))
    carrier.run_batch("c0", [s(13)], 0, 0)
    carrier.run_batch("c0", [s(20)], 0, 1)  # the table changed while the batch ran
    world.hear("c0")
    assert world.validity("q") == UNDECIDED
    world.batch("c0", s(21))
    assert world.validity("q") == (True, 20 * SECOND + 1, None)


def test_an_aggregate_over_a_join_needs_the_partners_before_its_window(world: World) -> None:
    world.submit(submission("first", "narrow join window"))
    world.batch("c0", s(10), s(12))
    world.submit(submission("q", "join window", start=NOW))
    world.batch("c0", s(13), s(13))
    assert world.validity("q") == (True, 12 * SECOND + 1 + 2 * SECOND, None)


@pytest.mark.parametrize(("start", "expected"), [(BEGINNING, None), (NOW, 12 * SECOND + 1), (Start(5), 5)])
def test_who_shares_a_fragment_has_as_much_of_its_past_as_it_asked_for(
    world: World, start: Start, expected: int | None
) -> None:
    run_first(world, "filter")
    world.submit(submission("q", "same filter", start=start))
    assert world.validity("q") == (True, expected, None)


# --- until -----------------------------------------------------------------------------------------------------------


def test_a_withdrawn_query_answers_for_all_that_was_read(world: World) -> None:
    run_first(world)
    world.withdraw("first")
    assert world.validity("first") == (True, None, 12 * SECOND + 1)
    world.batch("c0", s(11, 16))
    assert world.validity("first") == (True, None, 12 * SECOND + 1)
    assert world.controller.known.rows("c0") == [], "nothing older can still come"


def test_a_query_that_nothing_was_read_for_answers_for_nothing(world: World) -> None:
    world.submit(submission("q", "join"))
    world.withdraw("q")
    assert world.validity("q") == (True, None, BEGINNING_US)


def test_a_query_that_nobody_confirmed_answers_for_nothing(world: World) -> None:
    run_first(world)
    world.submit(submission("q", "filter"))
    world.withdraw("q")
    assert world.validity("q") == (True, None, BEGINNING_US)
    assert world.controller.state.fragments[2].status is FragmentStatus.GONE


def test_the_slower_input_of_a_join_is_waited_for(world: World) -> None:
    world.submit(submission("q", "join"))
    world.batch("c0", s(100), s(50))
    world.withdraw("q")
    for seconds in (60, 103):
        world.batch("c0", s(200), s(seconds))
        assert world.part("q").until_us == 100 * SECOND + 1
        assert not losses(world) and world.controller.known.rows("c0")
    world.batch("c0", [], s(104))
    assert not world.controller.known.rows("c0")


def test_results_of_batches_that_nobody_has_heard_of_are_not_taken_back(world: World) -> None:
    run_first(world)
    world.carriers["c0"].run_batch("c0", [s(40)], 0, 0)
    world.withdraw("first")
    world.hear("c0")
    assert (world.part("first").until_us, world.part("first").deciding) == (40 * SECOND + 1, 2)
    world.carriers["c0"].run_batch("c0", [s(50)], 0, 1)  # the table changed while the batch ran
    world.batch("c0", s(60))
    assert (world.part("first").until_us, world.part("first").deciding) == (50 * SECOND + 1, None)


def test_an_end_that_a_batch_has_just_reached_lies_behind_it(world: World) -> None:
    run_first(world)
    world.carriers["c0"].run_batch("c0", [[12 * SECOND + 1]], 0, 0)
    world.withdraw("first")
    assert world.part("first").until_us == 12 * SECOND + 1
    world.hear("c0")
    assert world.part("first").until_us == 12 * SECOND + 2


def test_a_carrier_at_rest_shows_as_much_as_a_batch(world: World) -> None:
    run_first(world)
    world.withdraw("first")
    assert world.controller.undecided == {"c0"}
    world.act(world.controller.rest("c0"))
    assert (world.part("first").until_us, world.part("first").deciding) == (12 * SECOND + 1, None)
    assert not world.controller.undecided


def test_a_query_is_done_when_its_input_is_complete_up_to_1970(world: World) -> None:
    world.submit(submission("first", "filter"))
    world.batch("c0", s(-10))
    world.withdraw("first")
    world.batch("c0", [DELAY])
    assert world.everything.carriers["c0"].complete_us == 0
    assert world.part("first").done


def test_all_selects_end_together(world: World) -> None:
    world.submit(submission("q", "union"))
    world.batch("c0", s(12))
    world.withdraw("q")
    assert [part.until_us for part in world.parts("q")] == [12 * SECOND + 1] * 2


def test_who_leaves_a_shared_fragment_leaves_it_to_the_others(world: World) -> None:
    run_first(world, "filter")
    world.submit(submission("q", "same filter"))
    world.withdraw("first")
    world.batch("c0", s(20))
    assert world.part("first").done and world.controller.known.rows("c0")
    world.withdraw("q")
    world.batch("c0", s(30))
    assert not world.controller.known.rows("c0") and not losses(world)


@pytest.mark.parametrize("kind", ["filter", "window", "join"])
def test_who_leaves_ends_when_the_job_is_drained(world: World, kind: str) -> None:
    """Nobody else can know that nothing more comes: a pause may be followed by rows of the same time."""
    world.submit(submission("q", kind), submission("stays", "other filter"))
    for name, carrier in world.carriers.items():
        world.batch(name, *[s(12)] * carrier.inputs)
    world.withdraw("q")
    for name in list(world.carriers):
        world.act(world.controller.rest(name))
    assert not world.part("q").done
    world.act(world.controller.queries.endings.drained())
    assert (world.part("q").until_us, world.part("q").done) == (12 * SECOND + 1, True)
    assert not world.part("stays").done


def test_windows_that_silence_has_closed_are_not_taken_back(world: World) -> None:
    world.submit(submission("q", "window"))
    world.batch("c0", s(1))
    world.carriers["c0"].ticks[0] = 8 * SECOND
    world.batch("c0", [])
    world.batch("c0", [])  # of watermark 5: it shows the window from 0 to 4
    world.withdraw("q")
    assert world.part("q").until_us == 5 * SECOND
    world.act(world.controller.rest("c0"))
    assert world.part("q").done, "all that it owes is there"


def test_windows_that_silence_closed_unheard_are_not_taken_back(world: World) -> None:
    world.submit(submission("q", "window"))
    world.batch("c0", s(1))
    world.carriers["c0"].ticks[0] = 8 * SECOND
    world.carriers["c0"].run_batch("c0", [[]], 0, 0)
    world.carriers["c0"].run_batch("c0", [[]], 0, 0)
    world.withdraw("q")
    assert world.part("q").until_us == SECOND + 1
    world.hear("c0")
    world.act(world.controller.rest("c0"))
    assert (world.part("q").until_us, world.part("q").deciding) == (5 * SECOND, None)


def test_windows_that_are_open_keep_a_fragment_until_they_are_closed(world: World) -> None:
    world.submit(submission("q", "window"))
    world.batch("c0", s(10, 12))
    world.withdraw("q")
    world.batch("c0", s(16))
    assert world.controller.state.fragments[1].status is FragmentStatus.LEAVING
    world.crash()
    assert world.carriers["c0"].running
    world.batch("c0", s(17))
    assert world.controller.state.fragments[1].status is FragmentStatus.GONE


# --- replaced --------------------------------------------------------------------------------------------------------


def ends(world: World) -> list[tuple[int | None, int | None, int | None]]:
    """Of every part: from, where the next version takes over, until."""
    return [(part.from_us, part.ceded_us, part.until_us) for _, part in sorted(world.everything.parts.items())]


def test_the_new_version_takes_over_where_the_old_one_ends(world: World) -> None:
    run_first(world, "filter")
    world.submit(submission("first", "narrow filter"))
    old, new = world.everything.queries[1], world.everything.queries[2]
    assert (old.running, new.running, new.replaces, new.series) == (False, True, old.id, old.series)
    assert ends(world) == [(None, None, None), (None, None, None)], "the old one goes on"
    world.batch("c0", s(13, 20))
    assert ends(world)[0] == (None, 20 * SECOND + 1, None)
    assert not world.part("first").settled
    world.batch("c0", s(19, 24))
    assert ends(world) == [(None, 20 * SECOND + 1, None), (20 * SECOND + 1, None, None)]
    assert [row["_fragment"] for row in world.controller.known.rows("c0")] == [2], "nothing below 20 s can still come"


def test_the_old_version_goes_on_until_all_selects_of_the_new_one_answer(world: World) -> None:
    run_first(world, "filter")
    world.submit(submission("ahead", "narrow join window"))
    world.batch("c1", s(50), s(50))
    one, other = submission("first", "narrow filter"), submission("first", "join window")
    world.submit(replace(one, pipelines=(*one.pipelines, *other.pipelines)))
    world.batch("c0", s(13))
    assert ends(world)[0] == (None, None, None), "the other SELECT is not seen yet"
    world.batch("c1", s(51), s(51))
    begin = 50 * SECOND + 1 + 2 * SECOND  # a join's window after what its carrier had read
    assert ends(world)[0] == (None, begin, None)
    for seconds in (14, 60, 70):
        world.batch("c0", s(seconds))
    assert [part.from_us for part in world.parts("first")] == [begin, begin]
    assert not losses(world)


def test_a_new_version_may_take_over_at_the_very_beginning_of_1970(world: World) -> None:
    """Which is event time 0."""
    world.submit(submission("first", "filter"))
    world.batch("c0", s(-10))
    world.submit(submission("first", "narrow filter"))
    world.batch("c0", [-1])
    world.batch("c0", s(20))
    assert ends(world) == [(None, 0, None), (0, None, None)]


def test_other_columns_begin_a_series_of_their_own(world: World) -> None:
    run_first(world, "filter")
    world.submit(submission("first", "computed"))
    old, new = world.everything.queries[1], world.everything.queries[2]
    assert (new.replaces, new.series) == (old.id, new.id)


def test_a_version_that_is_replaced_before_it_began_never_was(world: World) -> None:
    run_first(world, "filter")
    world.submit(submission("first", "narrow filter"))
    world.submit(submission("first", "other filter"))
    never, newest = world.everything.queries[2], world.everything.queries[3]
    assert (never.replaces, never.series, newest.replaces, newest.series) == (None, 2, 1, 1)
    for seconds in (20, 30, 40):
        world.batch("c0", s(seconds))
    assert ends(world) == [
        (None, 20 * SECOND + 1, None),
        (None, None, BEGINNING_US),
        (20 * SECOND + 1, None, None),
    ]


def test_one_that_is_withdrawn_before_it_began_leaves_with_the_one_before(world: World) -> None:
    run_first(world, "filter")
    world.submit(submission("first", "narrow filter"))
    world.withdraw("first")
    assert ends(world) == [(None, None, 12 * SECOND + 1), (None, None, BEGINNING_US)]
    found = world.journal.query("first")
    assert found is not None and found.id == 1, "its results are those of the one before"


def test_windows_that_began_before_are_finished_by_the_old_version(world: World) -> None:
    world.submit(submission("w", "window"))
    world.batch("c0", s(10))
    world.submit(submission("w", "hopping"))
    for seconds in (11, 12, 16):
        world.batch("c0", s(seconds))
    old, new = world.everything.parts[1, 0, 0], world.everything.parts[2, 0, 0]
    assert old.ceded_us == new.from_us == 11 * SECOND + 1
    assert not old.done, "a window that begins at 8 s ends at 12 s, one that begins at 11 s would end at 15 s"
    world.batch("c0", s(19))
    assert world.everything.parts[1, 0, 0].done


def test_copies_end_together(tmp_path: Path) -> None:
    world = World(tmp_path / "journal.sqlite", ("a", "b"))
    world.submit(replace(submission("q", "filter"), copies=2))
    world.batch("c0", s(50))
    world.batch("c1", s(20))  # the other node is slow
    world.withdraw("q")
    assert [part.until_us for part in world.parts("q")] == [50 * SECOND + 1] * 2
    world.batch("c0", s(60))
    world.batch("c1", s(30))
    assert [part.done for part in world.parts("q")] == [True, False]
    world.batch("c1", s(60))
    assert all(part.done for part in world.parts("q")) and not losses(world)


def test_an_end_is_open_for_all_who_answer_until_the_last_has_reported(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    world = World(store.journal, ("a", "b"))
    world.submit(replace(submission("q", "filter"), copies=2))
    world.batch("c0", s(50))
    world.batch("c1", s(20))
    world.carriers["c1"].run_batch("c1", [s(60)], 0, 0)  # nobody has heard of it yet
    world.withdraw("q")
    world.batch("c0", s(51))
    assert [part.deciding for part in world.parts("q")] == [None, 2]
    assert [part.undecided for part in read_parts(world.journal, store, world.query("q"))] == [True, True]
    world.hear("c1")
    world.batch("c1", s(61))
    assert [part.until_us for part in world.parts("q")] == [60 * SECOND + 1] * 2
    assert [part.undecided for part in read_parts(world.journal, store, world.query("q"))] == [False, False]


# --- starting again --------------------------------------------------------------------------------------------------


def test_a_start_from_the_journal_publishes_and_starts(world: World) -> None:
    run_first(world)
    controller = Controller(world.journal.load(), CATALOG)
    assert controller.resume() == [PublishTable("c0"), StartCarrier("c0")]
    assert controller.state.carriers["c0"].version == 2
    assert [row["_fragment"] for row in controller.known.rows("c0")] == [1]


def test_a_joiner_is_clear_of_all_that_batches_before_a_crash_may_have_had(world: World) -> None:
    run_first(world)
    world.submit(submission("q", "filter", start=NOW))
    carrier = world.carriers["c0"]
    carrier.run_batch("c0", [s(30)], 0, 0)  # nobody hears of it
    world.crash()
    world.batch("c0", [])
    assert world.validity("q") == (True, 30 * SECOND + 1, None), "so far its position had come"
    assert not losses(world)


def test_what_a_repeated_batch_had_counts_among_what_came_before(world: World) -> None:
    run_first(world)
    carrier = world.carriers["c0"]
    carrier.run_batch("c0", [s(20)], 0, 0)  # it wrote its results, and was not committed
    world.crash()
    world.submit(submission("q", "filter", start=Start(15 * SECOND)))
    carrier.repeat_batch("c0")
    world.hear("c0")
    assert world.validity("q") == UNDECIDED, "its fragment answers from 20 s on, so the past has to be read again"
    assert not losses(world)


def test_the_watermark_bounds_what_nobody_heard_of_where_there_is_one_input(world: World) -> None:
    run_first(world)
    world.submit(submission("q", "filter", start=NOW))
    carrier = world.carriers["c0"]
    carrier.has_times = False
    carrier.run_batch("c0", [s(30)], 0, 0)  # nobody hears of it
    world.crash()
    world.batch("c0", s(2))  # far too late to say anything of what came before
    assert world.validity("q") == (True, 30 * SECOND + 1000, None), "watermarks are whole milliseconds"
    assert not losses(world)


def test_a_query_starts_after_a_restart_although_one_input_is_silent(world: World) -> None:
    world.submit(submission("j", "other join"))
    world.batch("c0", s(10), s(12))
    world.crash()
    world.submit(submission("late", "join", start=NOW))
    world.batch("c0", s(11), [])
    assert world.validity("late") == (True, 12 * SECOND + 1, None)
    assert not losses(world)


def test_an_input_that_stood_still_brought_nothing_that_nobody_heard_of(world: World) -> None:
    world.submit(submission("j", "other join"))
    world.carriers["c0"].has_times = False
    world.batch("c0", s(10), s(12))
    world.carriers["c0"].run_batch("c0", [s(30), []], 0, 0)
    world.crash()
    world.submit(submission("late", "join", start=NOW))
    world.batch("c0", [], [])
    assert world.validity("late") == UNDECIDED, "nobody knows how far the first input had come"
    world.batch("c0", s(29), [])
    assert world.validity("late") == (True, 29 * SECOND + DELAY + 1000, None)
    assert not losses(world)


def test_reports_that_were_missed_are_like_a_crash(world: World) -> None:
    run_first(world)
    world.submit(submission("q", "filter", start=NOW))
    carrier = world.carriers["c0"]
    carrier.run_batch("c0", [s(30)], 0, 0)
    carrier.events.clear()
    world.batch("c0", s(29))
    assert world.validity("q") == (True, 30 * SECOND + 1, None)
    assert not losses(world)


def test_the_watermark_shows_how_far_batches_came_that_nobody_heard_of(world: World) -> None:
    world.submit(submission("j", "join window"))
    world.batch("c0", s(1), s(1))
    world.carriers["c0"].run_batch("c0", [s(60), s(50)], 0, 0)
    world.crash()
    world.batch("c0", [], [])
    assert world.controller.state.carriers["c0"].inputs_us == (50 * SECOND, 50 * SECOND), "at least"
    assert not losses(world)


def test_a_carrier_without_queries_is_started_when_one_comes(world: World) -> None:
    run_first(world)
    world.withdraw("first")
    world.batch("c0", s(13, 16))
    world.crash()
    assert not world.carriers["c0"].running
    world.submit(submission("q", "filter", start=NOW))
    assert world.carriers["c0"].running
    world.batch("c0", s(17))
    assert world.validity("q") == (True, 17 * SECOND + 1, None)


def test_a_decision_that_was_not_carried_out_is_carried_out_later(world: World) -> None:
    world.controller.queries.submit([submission("q", "filter")])
    world.save()
    world.crash()
    assert world.carriers["c0"].running
    assert world.validity("q") == EVERYTHING


def test_numbers_are_never_used_twice(world: World) -> None:
    run_first(world)
    world.withdraw("first")
    world.crash()
    world.submit(submission("q", "filter", start=NOW), submission("w", "window"))
    assert list(world.everything.fragments) == [1, 2, 3]
    assert list(world.controller.state.carriers) == ["c0", "c1"]
    assert world.query("q").id == 2


def test_a_longer_delay_of_the_next_run_counts(world: World) -> None:
    run_first(world)
    slower = {name: stream(name, 2 * DELAY) for name in CATALOG}
    controller = Controller(world.journal.load(), slower)
    controller.resume()
    assert controller.state.carriers["c0"].delay_us == 2 * DELAY


# --- late rows -------------------------------------------------------------------------------------------------------


def test_late_rows_are_added_up_by_stream_once_and_reported(world: World) -> None:
    world.submit(submission("j", "join"))
    done = batch_done("c0", 0, 1, [9 * SECOND, 9 * SECOND], first=True)
    # Both inputs of a join may read one stream: its rows count once.
    for number, late in enumerate([({}, {}), ({"s": 2}, {}), ({"s": 1}, {"s": 3, "t": 4})]):
        world.act(world.controller.handle(replace(done, batch=number, late=late)))
    world.act(world.controller.handle(replace(done, batch=2, late=({"s": 100}, {}))))  # heard before
    (carrier,) = world.controller.state.carriers.values()
    assert carrier.late_rows == {"s": 3, "t": 4}
    assert carrier.unheard == 0
    world.act(world.controller.handle(replace(done, batch=5, late=({}, {}))))
    assert carrier.unheard == 2, "what was late in batches 3 and 4 nobody knows"
    texts = [entry.text.split(":")[0] for entry in world.journal.history() if entry.kind is EventKind.LATE_ROWS]
    assert texts == ["stream s", "stream t"]
    assert world.journal.load() == world.controller.state
