"""Planners compared and a plan carried out, and the history replayed on the map, before nodes that are played."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from towpath.service.client import Client
from towpath.store.layout import Store

from .conftest import PATIENCE_MS, Open
from .crowd import MIXED, Served, crowd, some_queries
from .test_pages import wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.console, pytest.mark.timeout(300)]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with crowd(tmp_path, MIXED | some_queries(20), every="1 second") as found:
        yield found


def compared(page: Page, served: Served, *planners: str) -> None:
    for _ in range(PATIENCE_MS // 100):
        if Store(served.store).situation.exists():
            break
        page.wait_for_timeout(100)
    page.wait_for_selector(".comparison tbody tr")
    for planner in planners:
        page.click(f"[aria-label='Ask {planner}']")
        page.wait_for_selector(f".comparison button:text-is('{planner}')")


def settled(client: Client, page: Page) -> None:
    for _ in range(PATIENCE_MS // 200):
        if not client.status().moves:
            return
        page.wait_for_timeout(200)
    raise AssertionError("moves are still under way")


def homes(client: Client) -> dict[str, list[str]]:
    return {query.name: query.nodes for query in client.queries()}


def test_planners_are_compared_and_one_is_followed(served: Served, open_page: Open, shot: Callable[..., None]) -> None:
    page = open_page(served, "plan")
    compared(page, served, "single", "round_robin")
    assert "As it is now" in page.inner_text(".comparison tbody")
    assert page.locator(".comparison td.worse").count() > 0  # everything on one node
    page.select_option("[aria-label=Metrics]", "hummer")
    assert "hummer.F" in page.inner_text(".comparison thead")
    page.select_option("[aria-label=Metrics]", "")
    page.click(".comparison button:text-is('single')")
    page.wait_for_selector("h2:has-text('single')")
    shot(page, "plan-chosen")
    planned = page.locator(".planned li").count()
    assert page.inner_text(".chosen-plan header p") == f"would move {planned} of 25 fragments"
    page.click("text=Apply")
    page.wait_for_selector(f"dialog >> text=Move {planned} fragments as single places them?")
    shot(page, "plan-asked")
    with Client(served.address, served.token) as client:
        assert client.status().moves == []
        page.click(f"dialog >> button:has-text('Move {planned} fragments')")
        page.wait_for_selector(f".chosen-plan .banner >> text={planned} fragments set out")
        shot(page, "plan-applied")
        settled(client, page)
        assert len({node for nodes in homes(client).values() for node in nodes}) == 1
    page.goto(f"{served.address}/#/history")
    page.wait_for_selector(".entry:has-text('single places it there: asked for')")


def test_a_reader_compares_and_applies_nothing(served: Served, open_page: Open) -> None:
    page = open_page(served, "plan", token=served.reader_token)
    compared(page, served, "single")
    page.click(".comparison button:text-is('single')")
    page.wait_for_selector(".planned li")
    assert page.locator("text=Apply").count() == 0


def test_why_there_is_no_plan_is_said(tmp_path: Path, open_page: Open, shot: Callable[..., None]) -> None:
    with crowd(tmp_path, MIXED) as unmeasured:
        page = open_page(unmeasured, "plan")
        page.wait_for_selector(".comparison tbody tr")
        page.click("[aria-label='Ask grouping']")
        page.wait_for_selector(".failure:has-text('give the job file a section control')")
        shot(page, "plan-refused")


def drawn(page: Page) -> dict[str, str]:
    """By query, the node on the map of the moment that is shown."""
    found: dict[str, str] = page.evaluate(
        """() => {
            const {inside, carriers} = towpathMap.shown
            const home = Object.fromEntries(carriers.map(({id, node}) => [id, node]))
            return Object.fromEntries(inside.flatMap(({carrier, drawn}) =>
                drawn.flatMap(({queries}) => queries.map(name => [name, home[carrier]]))))
        }"""
    )
    return found


def test_the_history_is_replayed_on_the_map(served: Served, open_page: Open, shot: Callable[..., None]) -> None:
    with Client(served.address, served.token) as client:
        page = open_page(served, "queries")
        told: dict[int, dict[str, str]] = {}  # by the number of the newest entry, where queries were

        def remember() -> None:
            settled(client, page)
            newest = client.history()[-1].number
            told[newest] = {name: nodes[0] for name, nodes in homes(client).items()}

        remember()
        client.migrate("high-bids", to="right")
        remember()
        client.submit({"late": {"sql": "SELECT auction FROM bids WHERE price > 777", "node": "left"}})
        page.wait_for_timeout(2500)
        remember()
        client.migrate("late", to="right")
        client.withdraw(["bids-00003"])
        page.wait_for_timeout(1500)
        remember()
        page.goto(f"{served.address}/#/history")
        page.wait_for_selector(".entry:has-text('withdrawn')")
        page.click("text=Replay on the map")
        page.wait_for_selector(".log .entry")
        wait_until(page, "window.towpathMap?.shown")
        entries = [entry.number for entry in client.history()]
        for newest, truth in told.items():
            slide(page, entries.index(newest) + 1)
            assert drawn(page) == truth
        slide(page, 0)
        assert drawn(page) == {}
    slide(page, len(entries) - 3)
    shot(page, "replay-moment")
    page.locator("input[type=range]").focus()
    page.keyboard.press("ArrowLeft")
    wait_until(page, f"document.querySelector('input[type=range]').value == {len(entries) - 4}")
    page.click("[aria-label='One entry on']")
    wait_until(page, f"document.querySelector('input[type=range]').value == {len(entries) - 3}")


def slide(page: Page, to: int) -> None:
    page.locator("input[type=range]").evaluate(
        "(slider, to) => { slider.value = to; slider.dispatchEvent(new Event('input', {bubbles: true})) }", to
    )
    page.wait_for_timeout(150)
