"""A carrier that keeps failing: who is at fault is found and set aside, everything else goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towpath.control.act import quarantine
from towpath.control.act.engine import Engine
from towpath.control.decide.requests import Request
from towpath.control.decide.search import Cause, Tried, Verdict, search
from towpath.control.journal.journal import Journal
from towpath.control.state.history import EventKind
from towpath.errors import RuntimeFailure
from towpath.lang import parse
from towpath.plan import CUT, WHOLE
from towpath.plan.assignment import Row
from towpath.plan.templates import Template
from towpath.runtime.carriers import BatchDone, CarrierEvent, CarrierFailed, TriedOut
from towpath.runtime.fake import FakeNode
from towpath.store.layout import Store

from .world import CATALOG, DELAY, SECOND, SQL, batch_done

# --- the search ------------------------------------------------------------------------------------------------------


def judge(
    fragments: Sequence[int],
    passes: Callable[[tuple[int, ...]], bool],
    blamed: Callable[[tuple[int, ...]], int | None] = lambda table: None,
) -> tuple[Verdict, int]:
    tries, asked = search(fragments), 1
    table = next(tries)
    while True:
        try:
            passed = passes(table)
            table = tries.send(Tried(passed, None if passed else blamed(table)))
        except StopIteration as found:
            return found.value, asked
        asked += 1


@given(st.lists(st.integers(1, 10_000), unique=True, min_size=1, max_size=200), st.data())
def test_exactly_the_guilty_are_found(fragments: list[int], data: st.DataObject) -> None:
    guilty = set(data.draw(st.lists(st.sampled_from(fragments), unique=True, min_size=1, max_size=5)))
    verdict, asked = judge(fragments, lambda table: not guilty & set(table))
    assert verdict == Verdict(Cause.FRAGMENTS, tuple(sorted(guilty)))
    assert asked <= 3 + len(guilty) * (len(fragments).bit_length() + 1)


@given(st.lists(st.integers(1, 10_000), unique=True, min_size=1, max_size=200), st.data())
def test_whom_failures_name_is_found_with_a_try_each(fragments: list[int], data: st.DataObject) -> None:
    """Some fail without saying who it was: the others are found all the same."""
    guilty = set(data.draw(st.lists(st.sampled_from(fragments), unique=True, min_size=1, max_size=5)))
    silent = set(data.draw(st.lists(st.sampled_from(sorted(guilty)), unique=True, max_size=2)))

    def blamed(table: tuple[int, ...]) -> int | None:
        return min(guilty & set(table) - silent, default=None)

    verdict, asked = judge(fragments, lambda table: not guilty & set(table), blamed)
    assert verdict == Verdict(Cause.FRAGMENTS, tuple(sorted(guilty)))
    assert silent or asked == 2 + len(guilty)
    assert asked <= 3 + len(guilty) + len(silent) * len(fragments).bit_length()


@given(st.lists(st.integers(1, 100), unique=True, min_size=2, max_size=50), st.integers(1, 200))
def test_naming_somebody_who_has_no_part_in_it_accuses_nobody(fragments: list[int], named: int) -> None:
    """A machine that fails with any table and names one: it fails without that one, too."""
    assert judge(fragments, lambda table: False, lambda table: named)[0] == Verdict(Cause.CARRIER)


@given(st.lists(st.integers(1, 100), unique=True, min_size=2, max_size=50), st.data())
def test_two_that_fail_only_together_lose_one(fragments: list[int], data: st.DataObject) -> None:
    pair = set(data.draw(st.lists(st.sampled_from(fragments), unique=True, min_size=2, max_size=2)))
    verdict, _ = judge(fragments, lambda table: not pair <= set(table))
    assert verdict.cause is Cause.FRAGMENTS and len(verdict.guilty) == 1 and set(verdict.guilty) < pair


@given(st.lists(st.integers(1, 100), unique=True, max_size=50))
def test_what_fails_without_anybody_is_nobodys_fault(fragments: list[int]) -> None:
    assert judge(fragments, lambda table: False)[0] == Verdict(Cause.CARRIER)
    assert judge(fragments, lambda table: True)[0] == Verdict(Cause.GONE)


@given(
    st.lists(st.integers(1, 100), unique=True, min_size=1, max_size=30),
    st.lists(st.booleans(), max_size=60),
    st.none() | st.integers(1, 100),
)
def test_a_machine_that_gets_well_accuses_nobody(fragments: list[int], answers: list[bool], named: int | None) -> None:
    """Whatever it answers in between: who passes with everybody in the end has no one at fault."""
    given_, last = iter(answers), [True]

    def passes(table: tuple[int, ...]) -> bool:
        last[0] = next(given_, True)
        return last[0]

    verdict, _ = judge(fragments, passes, lambda table: named)
    assert verdict.cause is not Cause.FRAGMENTS or not last[0]


# --- the engine ------------------------------------------------------------------------------------------------------


class Node(FakeNode):
    """Carriers that do a micro-batch with every look, unless a fault in their table or their plan forbids it."""

    def __init__(self) -> None:
        super().__init__()
        self.bad_rows: Callable[[Row], bool] = lambda row: False
        self.bad_plan: Callable[[Template], bool] = lambda template: False
        self.bad_windows: set[int] = set()  # fragments that fail when a window of theirs closes, in the table or not
        self.broken = False  # whatever is to be done
        self.done: list[tuple[str, frozenset[int]]] = []  # micro-batches that count: which fragments had them
        self.second = 0

    slow_time = False  # event time stands still
    says_who = False  # whose row it is that fails
    full = False  # the disk, which a larger table needs more of

    def _fails(self, template: Template, rows: Sequence[Row], banned: Iterable[int] = ()) -> bool:
        closing = self.bad_windows - set(banned)
        return self.broken or bool(closing) or self.bad_plan(template) or any(map(self.bad_rows, rows))

    def try_out(
        self, carrier: str, template: Template, epoch: int, rows: Sequence[Row], banned: Sequence[int] = ()
    ) -> None:
        assert carrier not in self.running, "it would get in its own way"
        failed = self._fails(template, rows, banned) or (self.full and len(rows) > 1)
        named = next((int(row["_fragment"]) for row in rows if self.says_who and self.bad_rows(row)), None)
        failure = None if not failed else "a fault" if named is None else f"fragment {named} fails: a fault"
        self.news.append(TriedOut(carrier, failure, outside=self.full, blamed=named))

    def events(self) -> list[CarrierEvent]:
        self.second += not self.slow_time
        found = super().events()
        for carrier, template in list(self.running.items()):
            table = self.tables[carrier]
            if self.full or self._fails(template, [r for rows in table.values() for r in rows], self.banned[carrier]):
                del self.running[carrier]
                found.append(CarrierFailed(carrier, "a fault", outside=self.full))
                continue
            number = self.next_batch(carrier)
            self.done.append((carrier, frozenset(table)))
            found.append(self._report(carrier, template, number))
        return found

    def _report(self, carrier: str, template: Template, number: int) -> BatchDone:
        inputs = [self.second * SECOND] * len(template.family.classes)
        watermark = inputs[0] - DELAY - SECOND  # of the batch before
        return batch_done(carrier, number, self.versions[carrier], inputs, watermark, first=number == 0)


@pytest.fixture
def node() -> Node:
    return Node()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def opened(store: Store, node: Node) -> Engine:
    return Engine(store, Journal(store.journal), {"a": node}, CATALOG)


@pytest.fixture
def engine(store: Store, node: Node) -> Iterator[Engine]:
    with opened(store, node) as engine:
        yield engine


def request(name: str, sql: str, fragments: str = WHOLE) -> Request:
    return Request(parse(sql, CATALOG, name), fragments=fragments)


def submit(engine: Engine, count: int = 20) -> None:
    engine.submit([request(f"q{n}", f"SELECT k FROM s WHERE k = {100 + n}") for n in range(count)])


def has(value: float) -> Callable[[Row], bool]:
    return lambda row: value in row.values()


def poll(engine: Engine, times: int = 30) -> None:
    for _ in range(times):
        engine.poll()


def texts_of(store: Store, kind: EventKind) -> list[str]:
    journal = Journal(store.journal, read_only=True)
    try:
        return [entry.text for entry in journal.history() if entry.kind is kind]
    finally:
        journal.close()


def test_the_query_at_fault_is_set_aside_and_the_others_miss_nothing(engine: Engine, store: Store, node: Node) -> None:
    submit(engine)
    poll(engine, 3)
    node.bad_rows = has(113.0)
    poll(engine)
    assert set(engine.controller.queries.running) == {f"q{n}" for n in range(20)} - {"q13"}
    aside = engine.controller.queries.aside.get("q13")
    assert aside is not None and aside.failed == "a fault"
    (text,) = texts_of(store, EventKind.SET_ASIDE)
    assert text == (
        "query q13 is set aside and is complete up to 1970-01-01 00:00:00.000, "
        "since its carrier fails with it and not without it: a fault"
    )
    innocent = frozenset(p.fragment for n in range(20) if n != 13 for p in engine.answers.validity(f"q{n}"))
    assert all(innocent <= fragments for _, fragments in node.done), "every micro-batch had all of them"
    assert node.running, "the carrier goes on"
    assert [part.until_us for part in engine.answers.validity("q13")] == [3 * SECOND + 1], "all that was shown"


def test_a_query_that_was_set_aside_stays_so_after_a_restart_and_may_be_tried_again(store: Store, node: Node) -> None:
    node.bad_rows = has(113.0)
    with opened(store, node) as engine:
        submit(engine)
        poll(engine)
    with opened(store, node) as engine:
        assert list(engine.controller.queries.aside) == ["q13"]
        poll(engine)
        assert len(list(engine.controller.queries.running)) == 19
        node.bad_rows = lambda row: False
        engine.submit([request("q13", "SELECT k FROM s WHERE k = 113")])
        poll(engine)
        assert engine.controller.queries.running.get("q13") is not None
        assert list(engine.controller.queries.aside) == []


def test_several_are_found_at_once(engine: Engine, store: Store, node: Node) -> None:
    submit(engine)
    poll(engine, 3)
    node.bad_rows = lambda row: has(103.0)(row) or has(117.0)(row)
    poll(engine, 40)
    assert set(engine.controller.queries.aside) == {"q3", "q17"}
    assert len(texts_of(store, EventKind.SET_ASIDE)) == 2


def test_each_has_the_reason_that_names_it(engine: Engine, node: Node) -> None:
    submit(engine)
    poll(engine, 3)
    node.says_who, node.bad_rows = True, lambda row: has(103.0)(row) or has(117.0)(row)
    poll(engine, 8)
    aside = {name: query.failed for name, query in engine.controller.queries.aside.items()}
    assert set(aside) == {"q3", "q17"}
    for name, reason in aside.items():
        (part,) = engine.answers.validity(name)
        assert reason == f"fragment {part.fragment} fails: a fault"


def test_who_fails_when_its_windows_close_is_passed_over(engine: Engine, store: Store, node: Node) -> None:
    sql = "SELECT k, count(*) AS n FROM s [RANGE 4 SECONDS] WHERE k > {} GROUP BY k"
    engine.submit([request(f"w{n}", sql.format(100 + n)) for n in range(6)])
    poll(engine, 8)
    (part,) = engine.answers.validity("w4")
    node.bad_windows, node.slow_time = {part.fragment}, True
    poll(engine, 20)
    assert list(engine.controller.queries.aside) == ["w4"]
    (part,) = engine.answers.validity("w4")
    assert part.until_us == 8 * SECOND - DELAY - SECOND, "windows that had closed by the last micro-batch before"
    innocent = frozenset(p.fragment for n in range(6) if n != 4 for p in engine.answers.validity(f"w{n}"))
    assert all(innocent <= fragments for _, fragments in node.done)
    engine.close()
    with opened(store, node) as again:
        poll(again, 3)
        assert node.running and not again._quarantine.busy, "it is passed over after a restart, too"
        node.bad_windows.clear()  # the last of them is closed
        node.slow_time = False
        poll(again, 10)
        assert again.controller.banned("c0") == []


def test_windows_of_a_query_that_was_withdrawn_are_passed_over(engine: Engine, store: Store, node: Node) -> None:
    sql = "SELECT k, count(*) AS n FROM s [RANGE 4 SECONDS] WHERE k > {} GROUP BY k"
    engine.submit([request(f"w{n}", sql.format(100 + n)) for n in range(3)])
    poll(engine, 8)
    (part,) = engine.answers.validity("w1")
    node.bad_windows, node.slow_time = {part.fragment}, True
    engine.withdraw("w1")
    poll(engine, 20)
    assert node.running and set(engine.controller.queries.running) == {"w0", "w2"}
    assert not engine.controller.queries.aside
    (text,) = texts_of(store, EventKind.SET_ASIDE)
    assert text == "query w1, which leaves, ends at once, since its carrier fails with it: a fault"
    (part,) = engine.answers.validity("w1")
    assert part.until_us == 8 * SECOND - DELAY - SECOND, "not 8 s - 3 s: what that window owes never comes"


def test_a_plan_that_cannot_run_is_divided_until_the_query_at_fault_stands_alone(
    engine: Engine, store: Store, node: Node
) -> None:
    others = {f"x{n}": f"SELECT k + {n} AS n{n} FROM s WHERE v > {n}" for n in range(5)}
    bad = {"bad": "SELECT abs(v) + 1 AS n FROM s WHERE v > 3"}
    node.bad_plan = lambda template: "abs" in repr(template).lower()
    engine.submit([request(name, sql) for name, sql in (others | bad).items()])
    poll(engine, 60)
    assert set(engine.controller.queries.running) == set(others)
    assert list(engine.controller.queries.aside) == ["bad"]
    answering = {part.fragment for name in others for part in engine.answers.validity(name)}
    assert {f for carrier, fragments in node.done for f in fragments} == answering
    assert all(p.settled and p.from_us is None for name in others for p in engine.answers.validity(name)), (
        "nothing is missed"
    )
    journal = Journal(store.journal, read_only=True)
    assert journal.load() == engine.controller.state
    journal.close()


def test_a_carrier_that_nobody_makes_fail_is_started_again_and_again(
    engine: Engine, store: Store, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quarantine, "AGAIN_S", 0.0)
    submit(engine, 4)
    poll(engine, 3)
    node.broken = True
    poll(engine, 50)
    assert len(list(engine.controller.queries.running)) == 4
    texts = texts_of(store, EventKind.CARRIER_FAILED)
    assert len(texts) == 2 and "fails whatever it is to do: a fault" in texts[1], "recorded once"
    node.broken = False
    before = len(node.done)
    poll(engine, 5)
    assert len(node.done) > before and not engine.controller.queries.aside


@pytest.mark.parametrize("when", ["before", "while it is looked into"])
def test_a_full_disk_accuses_nobody(engine: Engine, node: Node, monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    monkeypatch.setattr(quarantine, "AGAIN_S", 0.0)
    submit(engine, 4)
    poll(engine, 3)
    node.bad_rows = has(102.0)
    if when == "while it is looked into":
        poll(engine, 2)
    node.full = True
    poll(engine, 10)
    assert not engine.controller.queries.aside
    node.full = False
    poll(engine)
    assert list(engine.controller.queries.aside) == ["q2"]


def test_who_waits_for_the_end_hears_that_there_is_none(engine: Engine, node: Node) -> None:
    submit(engine, 4)
    poll(engine, 3)
    node.broken = True
    with pytest.raises(RuntimeFailure, match="carrier c0 stopped: a fault"):
        engine.finishing.catch_up()


def test_who_waits_for_the_end_waits_for_the_others(engine: Engine, node: Node) -> None:
    submit(engine, 4)
    poll(engine, 3)
    node.bad_rows = has(102.0)
    engine.finishing.catch_up()
    assert list(engine.controller.queries.aside) == ["q2"] and node.running


def test_a_derived_stream_that_fails_takes_its_readers_with_it(engine: Engine, node: Node) -> None:
    engine.submit([request("j", SQL["join window"], CUT), request("other", SQL["filter"])])
    poll(engine, 3)
    link = next(q for q in engine.controller.state.queries.values() if q.origin == "link")
    (maker,) = {p.fragment for p in engine.controller.state.parts_of(link.id)}
    node.bad_rows = lambda row: row["_fragment"] == maker
    poll(engine)
    assert list(engine.controller.queries.running) == ["other"]
    assert list(engine.controller.queries.aside) == ["j"]


def test_a_copy_that_fails_where_it_goes_stays_where_it_was(store: Store) -> None:
    here, there = Node(), Node()
    with Engine(store, Journal(store.journal), {"a": here, "b": there}, CATALOG) as engine:
        submit(engine, 3)
        poll(engine, 3)
        there.bad_rows = has(101.0)
        engine.move("q1", "b")
        poll(engine)
        assert len(list(engine.controller.queries.running)) == 3
        assert [m.step for m in engine.controller.state.moves.values()] == ["abandoned"]
        assert {engine.controller.known.node_of(p.fragment) for p in engine.answers.validity("q1")} == {"a"}


def test_a_carrier_that_another_node_takes_over_is_not_looked_into_any_longer(store: Store) -> None:
    here, there = Node(), Node()
    with Engine(store, Journal(store.journal), {"a": here, "b": there}, CATALOG) as engine:
        submit(engine, 3)
        poll(engine, 3)
        here.bad_rows = has(101.0)
        engine.poll()
        here.lost = "it does not answer"  # type: ignore[assignment]
        here.news.clear()
        poll(engine)
        assert len(list(engine.controller.queries.running)) == 3 and there.running
        assert not engine._quarantine.busy


def test_a_query_that_fails_where_it_was_is_set_aside_although_it_answers_from_elsewhere(store: Store) -> None:
    here, there = Node(), Node()
    sql = "SELECT k, count(*) AS n FROM s [RANGE 4 SECONDS] WHERE k > {} GROUP BY k"
    with Engine(store, Journal(store.journal), {"a": here, "b": there}, CATALOG) as engine:
        engine.submit([request(f"w{n}", sql.format(100 + n)) for n in range(3)])
        poll(engine, 3)
        (source,) = {part.fragment for part in engine.answers.validity("w1")}
        engine.move("w1", "b")
        while [m.step for m in engine.controller.state.moves.values()] != ["draining"]:
            engine.poll()
        here.bad_windows = {source}
        poll(engine)
        assert set(engine.controller.queries.running) == {"w0", "w2"} and list(engine.controller.queries.aside) == [
            "w1"
        ]
        assert here.running, "the carrier goes on"
        (move,) = texts_of(store, EventKind.MOVE_DRAINED)
        assert "is done on a" in move
