"""A real job on Spark, in a browser: submitted, answered, moved by dragging, and all of it after a restart too."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from towpath.service import service_file
from towpath.service.client import Client
from towpath.store.layout import Store

from .conftest import Open
from .crowd import Served
from .test_pages import dot, wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.console, pytest.mark.timeout(900)]

JOB = """
store: ./sales.store
trigger: 1 second
control: {policy: static, every: 2 seconds, change_carriers: false}
streams:
  bids: {source: {type: auction, table: bids, rate: 200, seed: 1, disorder: 1 second}}
nodes:
  left: {type: embedded, cores: 1, memory: 1g}
  right: {type: embedded, cores: 1, memory: 1g}
queries:
  per-channel: |
    SELECT channel, count(*) AS n, max(price) AS best
    FROM bids [RANGE 5 SECONDS]
    GROUP BY channel
"""
PATIENCE_S = 240  # Spark starts, on a busy machine


@contextmanager
def up(folder: Path) -> Iterator[Served]:
    """`towpath up` as a user runs it, in a process of its own."""
    port = (folder / "port").read_text() if (folder / "port").exists() else "0"
    store = folder / "sales.store"
    with (folder / "up.log").open("a") as log:
        command = [str(Path(sys.executable).with_name("towpath")), "up", "sales.yaml", "--port", port]
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, env=dict(os.environ))
        try:
            yield _served(store, process, folder)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(PATIENCE_S)


def _served(store: Path, process: subprocess.Popen[bytes], folder: Path) -> Served:
    end = time.monotonic() + PATIENCE_S
    while process.poll() is None and time.monotonic() < end:
        found = service_file.read(Store(store).service)
        if found is not None:
            (folder / "port").write_text(found.address.rsplit(":", 1)[1])
            return Served(found.address, found.token, found.reader_token, store, {})
        time.sleep(0.2)
    raise AssertionError(f"the service did not start:\n{(folder / 'up.log').read_text()}")


def cells(page: Page) -> list[str]:
    return page.locator(".results tbody tr td").all_inner_texts()


def test_a_real_job(tmp_path: Path, open_page: Open, shot: Callable[..., None]) -> None:
    (tmp_path / "sales.yaml").write_text(JOB)
    with up(tmp_path) as served:
        page = open_page(served, "new")
        page.fill("#query-name", "dear")
        page.fill("#query-sql", "SELECT auction, price FROM bids WHERE price > 600")
        page.wait_for_selector("text=Puts out")
        page.click("button:has-text('Submit')")
        page.wait_for_selector(".results tbody tr", timeout=PATIENCE_S * 1000)
        shot(page, "real-query")
        assert page.locator(".results th").all_inner_texts() == ["auction", "price"]
        assert all(float(price) > 600 for price in cells(page)[1::2])
        with Client(served.address, served.token) as client:
            (fragment,) = next(query for query in client.queries() if query.name == "dear").fragments
        page.goto(f"{served.address}/#/map")
        wait_until(page, f"window.towpathMap?.where('fragment {fragment}')")
        page.wait_for_timeout(5000)
        page.mouse.move(*dot(page, f"fragment {fragment}"))
        page.mouse.down()
        page.mouse.move(*dot(page, "node right"), steps=8)
        page.mouse.up()
        page.click("dialog >> button:has-text('Move')")
        page.wait_for_selector(".moves .move")
        shot(page, "real-map-warming")
        page.wait_for_selector(".moves .move li.now:has-text('Draining')", timeout=PATIENCE_S * 1000)
        shot(page, "real-map-draining")
        page.wait_for_selector(".moves .move", state="detached", timeout=PATIENCE_S * 1000)
        page.wait_for_timeout(3000)
        shot(page, "real-map")
        page.goto(f"{served.address}/#/history/dear")
        page.wait_for_selector(".entry .kind:has-text('move drained')")
        steps = page.locator(".entry .kind").all_inner_texts()
        assert [step for step in steps if step.startswith("move")][::-1][:2] == ["move begun", "move fenced"]
        shot(page, "real-history")
        page.goto(f"{served.address}/#/queries/dear")
        page.wait_for_selector(".results tbody tr")
    page.wait_for_selector(".connection.lost")
    with up(tmp_path) as served:
        page.wait_for_selector(".connection.live", timeout=PATIENCE_S * 1000)
        before = len(cells(page))
        page.wait_for_selector(".facts dd:has-text('right')")
        page.wait_for_selector(".results tbody tr", timeout=PATIENCE_S * 1000)
        assert before > 0 and page.locator(".grid-row").count() == 2
        shot(page, "real-restarted")
        page.goto(f"{served.address}/#/plan")  # of what was measured until the service stopped
        page.click("[aria-label='Ask single']")
        page.click(".comparison button:text-is('single')", timeout=PATIENCE_S * 1000)
        page.wait_for_selector(".planned li:has-text('→')")
        shot(page, "real-plan")
        page.click("text=Apply")
        page.click("dialog >> button:has-text('Move 1 fragment')")
        page.wait_for_selector(".moves .move li.now:has-text('Draining')", timeout=PATIENCE_S * 1000)
        with Client(served.address, served.token) as client:
            assert len({node for query in client.queries() for node in query.nodes}) == 1
        page.goto(f"{served.address}/#/replay")
        page.wait_for_selector(".log .entry:has-text('single places it there')")
        wait_until(page, "window.towpathMap?.shown")
        page.wait_for_timeout(500)
        shot(page, "real-replay")
