"""Who reads a link is done when it has read all of it, and then closed its windows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from towpath.control.engine import Engine
from towpath.control.journal import Journal
from towpath.control.linkfiles import LinkFiles
from towpath.control.requests import Request
from towpath.lang import parse
from towpath.plan.cut import CUT, WHOLE
from towpath.runtime.carriers import Runtime
from towpath.store import Store

from .world import CATALOG, SQL


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
def engine(tmp_path: Path, done: list[str]) -> Iterator[Engine]:
    node = MagicMock(spec=Runtime)
    node.events.return_value = []
    node.lost = node.slow = None
    node.settle.side_effect = lambda carriers: done.append("settle")
    store = Store(tmp_path / "store")
    with Engine(store, Journal(store.journal), {"a": node}, CATALOG, idle_after_s=None) as engine:
        yield engine


def test_a_reader_that_has_read_all_gets_time_to_close_its_windows(engine: Engine, done: list[str]) -> None:
    engine.submit([Request(parse(SQL["join window"], CATALOG, "q"), fragments=CUT)])
    engine.catch_up()
    assert done == ["settle", "behind", "settle", "behind", "settle", "there", "settle"]


def test_without_links_once_is_enough(engine: Engine, done: list[str]) -> None:
    engine.submit([Request(parse(SQL["join window"], CATALOG, "q"), fragments=WHOLE)])
    engine.catch_up()
    assert done == ["settle"]
