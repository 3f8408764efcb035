"""A browser, and pages of it that are logged in. `make test-console` installs what is needed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from .crowd import Served

REPOSITORY = Path(__file__).parents[2]
SHOTS = REPOSITORY / "build" / "console"
MISSING = "`make test-console` installs it, and nothing here is skipped without"
PATIENCE_MS = 60_000  # not what anything should take: what a busy machine may

Open = Callable[..., "Page"]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        pytest.fail(f"playwright is not installed: {MISSING}")
    found = os.environ.get("TOWPATH_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.fail(f"there is no chromium: {MISSING}")
    with sync_playwright() as playwright:
        # The tests run as root in containers, where Chromium has no sandbox; the pages are our own.
        opened = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """Opens a page of a service, logged in unless `token` is empty. No page may have had an error at the end."""
    errors: list[str] = []
    contexts = []

    def opened(
        served: Served,
        place: str = "",
        *,
        token: str | None = None,
        size: tuple[int, int] = (1360, 850),
        dark: bool = False,
    ) -> Page:
        context = browser.new_context(
            viewport={"width": size[0], "height": size[1]}, color_scheme="dark" if dark else "light"
        )
        context.set_default_timeout(PATIENCE_MS)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        # A refused request and a service that is away are told by the browser too; the policy's refusals are errors.
        page.on(
            "console",
            lambda said: (
                errors.append(said.text)
                if said.type == "error" and "Failed to load resource" not in said.text
                else None
            ),
        )
        given = served.token if token is None else token
        page.goto(f"{served.address}/{f'#token={given}' if given else ''}")
        if given:
            page.wait_for_selector(".shell")
            page.goto(f"{served.address}/#/{place}")
        return page

    yield opened
    for context in contexts:
        context.close()
    # A refused request and a service that is away are told by the browser too; the policy's refusals are errors.
    assert [error for error in errors if "Failed to load resource" not in error] == []


@pytest.fixture
def shot(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Keeps a picture of a page in build/console, for people to look at."""

    def shoot(page: Page, name: str) -> None:
        SHOTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=SHOTS / f"{name}.png")

    return shoot
