"""The pages in a browser, before a service whose nodes are played."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from towpath.service.client import Client

from .conftest import PATIENCE_MS, REPOSITORY, Open
from .crowd import MIXED, Served, crowd, some_queries

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.console, pytest.mark.timeout(300)]

AXE = REPOSITORY / "console" / "node_modules" / "axe-core" / "axe.min.js"
GOOD = "SELECT auction, max(price) AS best\nFROM bids [RANGE 10 SECONDS]\nGROUP BY auction"
WRONG = "SELECT auction, pric\nFROM bids\nWHERE prize > 10"
PAGES = {"queries": ".grid-row a", "queries/bids-per-channel": ".facts", "new": "#query-sql", "map": "canvas"}
SETTLED_MS = dict.fromkeys(PAGES, 2500)  # two looks at the job; the other pages show no figures of their own
PAGES |= {"history": ".entry", "replay": ".log .entry", "plan": ".comparison tbody tr"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with crowd(tmp_path_factory.mktemp("crowd"), MIXED | some_queries(200), every="1 second") as found:
        yield found


def names(page: Page) -> list[str]:
    return [text.strip() for text in page.locator(".grid-row a").all_inner_texts()]


def test_only_the_token_lets_one_in(served: Served, open_page: Open, shot: Callable[..., None]) -> None:
    page = open_page(served, token="")
    page.fill("#token", "not-the-token")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=this is not the token of this service")
    shot(page, "login-wrong")
    page.fill("#token", served.token)
    page.click("text=Log in")
    page.wait_for_selector(".grid-row a")
    (cookie,) = page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert cookie["value"] not in (served.store / "console.json").read_text()
    assert served.token not in page.content() and page.evaluate("document.cookie") == ""
    page.click("text=Log out")
    page.wait_for_selector("#token")
    page.reload()
    page.wait_for_selector("#token")


def test_a_link_with_the_token_does_not_stay_in_the_address(served: Served, open_page: Open) -> None:
    page = open_page(served)
    assert served.token not in page.url
    page.go_back()
    assert served.token not in page.url


def test_a_reader_looks_and_changes_nothing(served: Served, open_page: Open) -> None:
    page = open_page(served, "queries/high-bids", token=served.reader_token)
    page.wait_for_selector(".facts")
    assert page.locator("text=Withdraw").count() == 0 and page.locator("text=New query").count() == 0
    refused = page.evaluate(
        "fetch('withdraw', {method: 'POST', body: '{\"names\": [\"high-bids\"]}'}).then(r => r.status)"
    )
    assert refused == 403


def test_the_list_is_searched_filtered_and_sorted(served: Served, open_page: Open) -> None:
    page = open_page(served, "queries")
    page.wait_for_selector("text=205 queries")
    page.fill("input[type=search]", "avg MEAN_price")
    page.wait_for_selector("text=1 of 205 queries")
    assert names(page) == ["bids-per-channel"]
    page.fill("input[type=search]", "no such query")
    page.wait_for_selector("text=No query matches")
    page.fill("input[type=search]", "")
    page.wait_for_selector("text=205 queries")
    page.click("role=columnheader[name=/Query/] >> role=button")
    page.wait_for_selector(".grid-row[aria-rowindex='2'] a:has-text('very-high-bids')")
    page.select_option("[aria-label=Node]", "right")
    page.wait_for_selector("text=69 of 205 queries")  # 200 / 3, rounded up, and two
    assert names(page)[0] == "bids-per-channel"


def test_keys_are_enough(served: Served, open_page: Open) -> None:
    page = open_page(served, "queries")
    page.wait_for_selector(".grid-row a")
    page.keyboard.press("/")
    page.keyboard.type("bids-0000")
    page.wait_for_selector("text=10 of 205 queries")
    page.keyboard.press("Tab")
    page.locator("[role=grid]").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector("h2:has-text('bids-00002')")
    page.keyboard.press("Escape")
    page.wait_for_selector(".panel", state="detached")


def test_a_query_is_checked_explained_submitted_and_withdrawn(
    served: Served, open_page: Open, shot: Callable[..., None]
) -> None:
    page = open_page(served, "new")
    page.fill("#query-name", "best-bids")
    page.fill("#query-sql", WRONG)
    page.wait_for_selector(".editor .wrong")
    assert page.locator(".editor .sql .wrong").all_inner_texts() == ["pric", "prize"]
    assert "did you mean price?" in page.inner_text("#problems")
    assert page.locator("text=Submit").is_disabled()
    shot(page, "submit-wrong")
    page.fill("#query-sql", GOOD)
    page.wait_for_selector("text=Puts out")
    assert page.locator(".editor .wrong").count() == 0
    page.click("text=Explain")
    page.wait_for_selector("[role=tree]")
    assert page.locator(".operator b").all_inner_texts()[0] == "aggregate"
    shot(page, "submit-explained")
    page.click("button:has-text('Submit')")
    page.wait_for_selector("h2:has-text('best-bids')")
    page.wait_for_selector(".panel .state.standing")
    assert "max" in page.inner_text(".panel .sql")
    page.click("text=Withdraw")
    page.click("dialog >> text=Cancel")
    page.click("text=Withdraw")
    page.click("dialog >> button:has-text('Withdraw')")
    page.wait_for_selector("text=best-bids was withdrawn")
    with Client(served.address, served.token) as client:
        assert "best-bids" not in [query.name for query in client.queries()]
    page.goto(f"{served.address}/#/history/best-bids")
    page.wait_for_selector(".entry .kind:has-text('withdrawn')")


def test_what_the_service_refuses_is_said(served: Served, open_page: Open) -> None:
    page = open_page(served, "new")
    page.fill("#query-sql", GOOD)
    page.wait_for_selector("text=Puts out")
    page.click("button:has-text('Submit')")
    page.wait_for_selector("text=Give the query a name.")
    page.fill("#query-name", "a name")
    page.wait_for_selector("text='a name' is not a valid name")


def wait_until(page: Page, condition: str) -> None:
    """As Playwright's wait_for_function, which needs what the pages' policy forbids."""
    for _ in range(PATIENCE_MS // 100):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"never: {condition}")


def dot(page: Page, fragment: str) -> Any:
    """Where a fragment is on the screen."""
    place: Any = page.evaluate(f"towpathMap.where('{fragment}')")
    box = page.locator(".drawing").bounding_box()
    assert place is not None and box is not None
    return box["x"] + place["x"], box["y"] + place["y"]


def test_a_query_moves_when_it_is_dragged_to_a_node(served: Served, open_page: Open, shot: Callable[..., None]) -> None:
    with Client(served.address, served.token) as client:
        (query,) = [query for query in client.queries() if query.name == "new-in-california"]
        assert query.nodes == ["left"]
        fragment = query.fragments[0]
        page = open_page(served, "map")
        wait_until(page, f"window.towpathMap?.where('fragment {fragment}')")
        page.mouse.move(*dot(page, f"fragment {fragment}"))
        page.mouse.down()
        page.mouse.move(*dot(page, "node left"), steps=5)
        page.mouse.move(*dot(page, "node right"), steps=5)
        shot(page, "map-dragging")
        page.mouse.up()
        page.wait_for_selector("dialog >> text=Move new-in-california to right?")
        shot(page, "map-asked")
        page.click("dialog >> button:has-text('Move')")
        page.wait_for_selector("text=new-in-california sets out for right")
        page.wait_for_selector(".moves .move")
        shot(page, "map-moving")
        page.wait_for_selector(".moves .move", state="detached")
        (query,) = [query for query in client.queries() if query.name == "new-in-california"]
        assert query.nodes == ["right"]
    shot(page, "map")


def test_dropped_where_it_was_nothing_moves(served: Served, open_page: Open) -> None:
    with Client(served.address, served.token) as client:
        (query,) = [query for query in client.queries() if query.name == "very-high-bids"]
        page = open_page(served, "map")
        wait_until(page, "window.towpathMap?.where('carrier c0')")
        page.mouse.move(*dot(page, f"fragment {query.fragments[0]}"))
        page.mouse.down()
        page.mouse.move(*dot(page, "carrier c0"), steps=5)
        page.mouse.up()
        assert page.locator("dialog").count() == 0
        assert client.status().moves == []
        assert query.nodes == ["left"]


def test_it_goes_on_when_the_service_is_started_again(
    tmp_path: Path, open_page: Open, shot: Callable[..., None]
) -> None:
    with crowd(tmp_path, MIXED) as first:
        page = open_page(first, "queries")
        page.wait_for_selector("text=5 queries")
        page.wait_for_selector(".connection.live")
        port = int(first.address.rsplit(":", 1)[1])
    page.wait_for_selector(".connection.lost")
    page.wait_for_selector(".banner >> text=The service does not answer")
    shot(page, "service-away")
    with crowd(tmp_path, some_queries(1), port) as second:
        page.wait_for_selector(".connection.live")
        page.wait_for_selector("text=6 queries")  # without logging in again
        assert second.token != first.token
        page.click("text=bids-00000")
        page.wait_for_selector(".panel .facts")


def test_ten_thousand_queries_stay_smooth(
    tmp_path: Path, open_page: Open, shot: Callable[..., None], record_property: Callable[[str, object], None]
) -> None:
    with crowd(tmp_path, some_queries(10_000), every="10 seconds") as served:
        page = open_page(served, token="")
        page.fill("#token", served.token)
        took = {"first view": timed(page, "document.querySelector('#token').form.requestSubmit()", "bids-00000")}
        page.wait_for_selector("text=10,000 queries")
        end = "document.querySelector('[role=grid]').scrollTo(0, 1e9)"
        took["to the end"] = timed(page, end, "bids-09999")
        assert page.locator(".grid-row").count() < 60
        search = (
            "{const e = document.querySelector('input[type=search]'); e.value = '09876';"
            "e.dispatchEvent(new Event('input', {bubbles: true}))}"
        )
        took["search"] = timed(page, search, "bids-09876")
        assert names(page) == ["bids-09876"]
        page.fill("input[type=search]", "")
        page.wait_for_selector("text=10,000 queries")
        took |= page.evaluate(SCROLLED)
        page.wait_for_selector(".grid-row.coming", state="detached")
        shot(page, "ten-thousand")
        page.goto(f"{served.address}/#/map")
        wait_until(page, "window.towpathMap?.where('node left')")
        page.wait_for_timeout(3000)
        shot(page, "ten-thousand-map")
        page.goto(f"{served.address}/#/replay")
        begun = time.perf_counter()
        wait_until(page, "window.towpathMap?.where('node left') && document.querySelector('.log .entry')")
        took["the history replayed"] = 1000 * (time.perf_counter() - begun)
        page.goto(f"{served.address}/#/plan")
        page.wait_for_selector(".comparison tbody tr")
        begun = time.perf_counter()
        page.click("[aria-label='Ask round_robin']")
        page.wait_for_selector(".comparison button:has-text('round_robin')")
        took["a plan"] = 1000 * (time.perf_counter() - begun)
        shot(page, "ten-thousand-plan")
    for what, value in took.items():
        record_property(what, value)
        print(f"ten thousand queries, {what}: {value:,.0f} ms")


def timed(page: Page, does: str, appears: str) -> float:
    """Milliseconds in the browser from doing something until a row is there."""
    found: float = page.evaluate(
        f"""row => new Promise(resolve => {{
            const begun = performance.now()
            const look = () => [...document.querySelectorAll('.grid-row a')].some(a => a.innerText === row)
                ? resolve(performance.now() - begun) : requestAnimationFrame(look)
            {does}
            look()
        }})""",
        appears,
    )
    return found


# Scrolls through the list for three seconds: how long frames took.
SCROLLED = """() => new Promise(resolve => {
    const box = document.querySelector('[role=grid]'), frames = []
    let before = performance.now()
    const begun = before
    const step = now => {
        frames.push(now - before)
        before = now
        box.scrollTop += 180
        if (now - begun < 3000) return requestAnimationFrame(step)
        frames.sort((a, b) => a - b)
        const at = share => frames[Math.floor(frames.length * share)]
        resolve({'a frame while scrolling, median': at(0.5), 'a frame while scrolling, 95th percentile': at(0.95)})
    }
    requestAnimationFrame(step)
})"""


@pytest.mark.parametrize("place", PAGES)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_page_is_accessible(
    served: Served, open_page: Open, shot: Callable[..., None], place: str, dark: bool
) -> None:
    assert AXE.exists(), "`npm ci` in the folder console/ brings axe-core"
    page = open_page(served, place, dark=dark)
    page.wait_for_selector(PAGES[place])
    page.wait_for_timeout(SETTLED_MS.get(place, 500))
    shot(page, f"{place.split('/')[-1]}-{'dark' if dark else 'light'}")
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'best-practice']})")
    assert [f"{v['id']}: {v['nodes'][0]['html'][:200]}" for v in found["violations"]] == []


@pytest.mark.parametrize("place", PAGES)
def test_a_page_fits_a_phone(served: Served, open_page: Open, shot: Callable[..., None], place: str) -> None:
    page = open_page(served, place, size=(390, 800))
    page.wait_for_selector(PAGES[place])
    page.wait_for_timeout(SETTLED_MS.get(place, 500))
    shot(page, f"{place.split('/')[-1]}-phone")
    assert page.evaluate("document.scrollingElement.scrollWidth") == 390
    assert re.search(r"Queries\s+Map\s+Plan\s+History", page.inner_text("nav"))
