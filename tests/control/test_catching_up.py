"""A job is drained when everything is read and all windows are closed, whoever closes them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, repeat
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from tests.nodes import quiet_node

from towpath.control.act.engine import Engine
from towpath.control.act.linkfiles import LinkFiles
from towpath.control.decide.requests import Request
from towpath.control.journal.journal import Journal
from towpath.control.state.records import BEGINNING_US
from towpath.lang import parse
from towpath.plan import CUT, WHOLE
from towpath.store.layout import Store

from .world import CATALOG, DELAY, SECOND, SQL, batch_done


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What happens, in its order: a reader is behind when it is looked at for the first two times."""
    found: list[str] = []
    answers = iter([True, True, False])

    def behind(*_: object) -> bool:
        answer = next(answers)
        found.append("behind" if answer else "there")
        return answer

    monkeypatch.setattr(LinkFiles, "behind", behind)
    return found


@pytest.fixture
def node(done: list[str]) -> MagicMock:
    node = quiet_node()
    node.settle.side_effect = lambda carriers: done.append("settle") is None
    return node


@pytest.fixture
def engine(tmp_path: Path, node: MagicMock) -> Iterator[Engine]:
    with opened(tmp_path, node) as engine:
        yield engine


def opened(folder: Path, node: MagicMock) -> Engine:
    store = Store(folder / "store")
    return Engine(store, Journal(store.journal), {"a": node}, CATALOG)


def test_a_reader_that_has_read_all_gets_time_to_close_its_windows(engine: Engine, done: list[str]) -> None:
    engine.submit([Request(parse(SQL["join window"], CATALOG, "q"), fragments=CUT)])
    engine.finishing.catch_up()
    assert done == ["settle", "behind", "settle", "behind", "settle", "there", "settle"]


def test_without_links_once_is_enough(engine: Engine, done: list[str]) -> None:
    engine.submit([Request(parse(SQL["join window"], CATALOG, "q"), fragments=WHOLE)])
    engine.finishing.catch_up()
    assert done == ["settle"]


def test_a_node_that_is_lost_and_back_at_once_has_settled_nothing(engine: Engine, node: MagicMock) -> None:
    engine.submit([Request(parse(SQL["window"], CATALOG, "q"))])
    node.settle.side_effect = [False, True]
    engine.finishing.settle()
    assert node.settle.call_count == 2


@pytest.mark.parametrize(("unheard", "reached_s"), [(0, 10), (3, 60)])
def test_windows_close_behind_the_batches_that_nobody_heard_of(
    tmp_path: Path, node: MagicMock, unheard: int, reached_s: int
) -> None:
    """The watermark may also come from ticks: nobody must think that there was data because of them."""
    with opened(tmp_path, node) as engine:
        engine.submit([Request(parse(SQL["window"], CATALOG, "q"))])
        node.events.side_effect = [[batch_done("c0", 0, 1, [10 * SECOND], first=True)], []]
        engine.poll()
    node.events.side_effect = None
    with opened(tmp_path, node) as engine:
        node.reset_mock()
        done = batch_done("c0", 1 + unheard, 1, [None], 60 * SECOND - DELAY, first=True)
        node.tick.side_effect = lambda carrier, n, us: setattr(node.events, "side_effect", chain([[done]], repeat([])))
        engine.finishing.drain()
        asked, closed = (call.args for call in node.tick.call_args_list)
    assert asked == ("c0", 0, BEGINNING_US)
    assert closed == ("c0", 0, (reached_s // 4 * 4 + 4) * SECOND + DELAY + 999), "RANGE 4 SECONDS: to the window's end"
