"""What pages cost the job: nothing without pages, and no more for many than for one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from towpath.console.look import JobLook, QueryLook
from towpath.console.watch import EVERY_S, QUERIES_EVERY_S, SHARE, Watch
from towpath.control.journal.journal import Journal
from towpath.store.layout import Store

from .fakes import FakeVerbs

QUERY = QueryLook(
    name="hot",
    state="standing",
    sql="SELECT price FROM bids",
    nodes=["left"],
    carriers=["c0"],
    kinds=["universal"],
    fragments=[7],
    seats=["c0"],
    shared_with=0,
    from_us=None,
    failed=None,
)


class PlayedLookout:
    def __init__(self) -> None:
        self.looks: list[str] = []
        self.shown = [QUERY]
        self.rows_per_s = 1.0

    def job(self) -> JobLook:
        self.looks.append("job")
        return JobLook(replace(FakeVerbs().status(), rows_per_s=self.rows_per_s), [], [], [])

    def queries(self) -> list[QueryLook]:
        self.looks.append("queries")
        return self.shown


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def watched(folder: Path, does: Callable[[Watch, PlayedLookout, Clock], Awaitable[None]]) -> None:
    store = Store(folder)
    Journal(store.journal).close()

    async def ask(verb: Callable[[], Any]) -> Any:
        await asyncio.sleep(0.01)  # until the loop comes to it
        return verb()

    async def run() -> None:
        lookout, clock = PlayedLookout(), Clock()
        await does(Watch(lookout, store, ask, clock), lookout, clock)

    asyncio.run(run())


def test_many_pages_cost_one_look(tmp_path: Path) -> None:
    async def does(watch: Watch, lookout: PlayedLookout, clock: Clock) -> None:
        assert lookout.looks == []
        await asyncio.gather(*(watch.queries() for _ in range(50)))
        assert lookout.looks == ["job", "queries"]
        clock.now += EVERY_S
        await asyncio.gather(*(watch.queries() for _ in range(50)))
        assert lookout.looks == ["job", "queries", "job"]
        clock.now += QUERIES_EVERY_S
        await asyncio.gather(*(watch.queries() for _ in range(50)))
        assert lookout.looks[3:] == ["job", "queries"]

    watched(tmp_path, does)


def test_who_cannot_wait_gets_a_look_of_their_own(tmp_path: Path) -> None:
    async def does(watch: Watch, lookout: PlayedLookout, clock: Clock) -> None:
        await watch.queries()
        lookout.shown = [QUERY, replace(QUERY, name="new")]
        assert [query.name for query in await watch.queries()] == ["hot"]
        assert [query.name for query in await watch.queries(at_once=True)] == ["hot", "new"]

    watched(tmp_path, does)


def test_a_look_that_takes_long_is_taken_seldom(tmp_path: Path, monkeypatch: Any) -> None:
    async def does(watch: Watch, lookout: PlayedLookout, clock: Clock) -> None:
        seconds = iter([0.0, 0.5, 1.0, 2.0])  # before and after the looks at the job and at the queries
        monkeypatch.setattr("towpath.console.watch.time.perf_counter", lambda: next(seconds))
        await watch.queries()
        monkeypatch.undo()
        clock.now += SHARE / 2 - 0.1
        await watch.queries()
        assert lookout.looks == ["job", "queries"]
        clock.now += 0.2
        await watch.queries()
        assert lookout.looks == ["job", "queries", "job"]
        clock.now += SHARE / 2
        await watch.queries()
        assert lookout.looks == ["job", "queries", "job", "job", "queries"]

    watched(tmp_path, does)


def test_only_what_has_changed_is_told_and_nothing_piles_up(tmp_path: Path) -> None:
    async def does(watch: Watch, lookout: PlayedLookout, clock: Clock) -> None:
        await watch.queries()
        first = watch.version
        assert watch.since(0).keys() >= {"figures", "nodes", "queries", "history"}
        for step in range(100):  # while a slow client does not come for it
            clock.now += EVERY_S
            lookout.rows_per_s = float(step)
            await watch.queries()
        assert watch.since(first).keys() == {"figures"}
        assert '"rows_per_s":99.0' in watch.since(first)["figures"]
        assert watch.since(watch.version) == {}

    watched(tmp_path, does)
