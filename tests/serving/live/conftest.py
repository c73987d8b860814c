from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.live.support import Log

#: Names under which systems have it.
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")

#: Beside others a browser, and what it looks at, may be slow.
PATIENCE_MS = 240_000


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A real browser without a window."""
    found = browser_program()
    if found is None:
        pytest.skip("no browser: apt-get install chromium")
    with opened_browser(found) as browser:
        yield browser


def browser_program() -> str | None:
    """Where it is; None: there is none."""
    return next(filter(None, map(shutil.which, CHROMIUM)), None)


@contextmanager
def opened_browser(program: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # Without a sandbox it also runs as root, and with /tmp in containers with a small /dev/shm.
        arguments = ["--no-sandbox", "--disable-dev-shm-usage"]
        browser = playwright.chromium.launch(executable_path=program, args=arguments, timeout=PATIENCE_MS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def window(browser: Browser) -> Iterator[BrowserContext]:
    """Where pages are opened as tabs. Another page stays open, so the process that draws them all does."""
    context = browser.new_context()
    context.set_default_timeout(PATIENCE_MS)
    context.new_page()
    yield context
    context.close()


@pytest.fixture
def visit(browser: Browser, window: BrowserContext) -> Iterator[Callable[..., Page]]:
    """Opens the page of an application; whatever goes wrong on it fails the test. ``may_lose``: the connection may be
    lost, which the browser reports, too. ``settings`` are those of a window of its own."""
    opened: list[Page] = []
    wrong: list[str] = []

    def visit(
        address: object, width: int = 1280, *, path: str = "/", may_lose: bool = False, **settings: Any
    ) -> Page:
        context = browser.new_context(**settings) if settings else window
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()
        opened.append(page)
        page.set_viewport_size({"width": width, "height": 900})
        page.on("pageerror", lambda error: wrong.append(str(error)))
        if not may_lose:
            page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
        page.goto(f"http://{address}{path}")
        return page

    yield visit
    for page in opened:
        # A page whose server has gone asks for it again and again. While a request with a login is under way, Chromium
        # may never close its context.
        if not page.is_closed():
            page.goto("about:blank")
            page.close()
        if page.context is not window:
            page.context.close()
    window.clear_cookies()
    assert wrong == []


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    log = Log(tmp_path)
    yield log
    log.close()
