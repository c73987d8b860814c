"""``python -m tests.serving.live.screenshots``: takes the pictures of the live page in ``docs/how-to`` anew.

A real application with two workers and a real browser, in about a minute. Some orders are late, and some fail.
"""

from __future__ import annotations

import random
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, FloatRect, Page

from tests.live.support import Log, eventually
from tests.serving.live.conftest import browser_program, opened_browser
from tests.serving.test_run_http import Run

PICTURES = Path(__file__).resolve().parents[3] / "docs" / "how-to"

SHOP = """
from datetime import timedelta
from pystreams import App, TimeWindows

app = App(
    "shop",
    processing_exception_handler="dead_letter",
    errors_dead_letter_queue_topic_name="dead-letters",
)


def check(amount: int) -> int:
    if amount <= 0:
        raise ValueError(f"an order of {amount}")
    return amount


products = app.table("products", key=str, value=int, name="products")
orders = app.stream("orders", key=str, value=int).map_values(check, value=int, step="checked")
priced = orders.join(products, lambda amount, price: amount * price, value=int, step="priced")
priced.to("priced-orders")
minutes = TimeWindows.tumbling(timedelta(minutes=1), grace=timedelta(seconds=5))
counts = priced.group_by_key().windowed_by(minutes).count(name="orders-by-minute", step="counted")
counts.to_stream(lambda key, _: key.key, key=str).to("counts")
"""

PARTITIONS = 4
PRODUCTS = [f"product {number}" for number in range(500)]

#: Orders are written so often, and so many of them at once. So some wait when the server looks, but not always.
PAUSE_MS = 250
ORDERS = 1_500

#: One order in so many is late, or wrong.
LATE, WRONG = 1_000, 5_000
LATE_MS = 180_000

#: Orders are written so often before a picture is taken: the line of the rates is nearly as long as its place by then.
BEFORE = 180

#: What is not seen within this time will not be seen.
PATIENCE_S = 120.0

#: The width of the windows, and what is left around a part of the page.
DESK, PHONE = 1240, 360
MARGIN = 14

#: These labels show that all is at work. A lag is seen at some moments only.
LABELS = {
    "='orders'": r"^lag [1-9]",
    "='KSTREAM-SOURCE-0000000002'": r"^[1-9].*/s",
    "^='KSTREAM-SINK'": r"^[1-9].*/s",
    "='checked'": r" failed$",
    "='counted'": r" late$",
    "='orders-by-minute'": r"^≈ [1-9].* hits$",
}


def main() -> int:
    """The exit status."""
    program = browser_program()
    if program is None:
        print("no browser: apt-get install chromium", file=sys.stderr)
        return 2
    # What it has started ends with it, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / ".pystreams").mkdir()
        log = stack.enter_context(closing(Log(folder / ".pystreams")))
        log.create("products", "orders", "priced-orders", "counts", "dead-letters", partitions=PARTITIONS)
        address = stack.enter_context(shop(folder))
        browser = stack.enter_context(opened_browser(program))
        pictures = take(log, browser, address)
    for name, content in pictures.items():
        (PICTURES / name).write_bytes(content)
        print(f"{PICTURES / name}: {len(content):,} bytes")
    return 0


@contextmanager
def shop(folder: Path) -> Iterator[str]:
    """The application; yields the address of its page."""
    (folder / "shop.py").write_text(SHOP, encoding="utf-8")
    run = Run(folder, "shop", "--workers", "2", "--http", "127.0.0.1:0")
    try:
        yield run.address
        run.send(signal.SIGTERM)
        run.ends_with(0)
    finally:
        run.close()


def take(log: Log, browser: Browser, address: str) -> dict[str, bytes]:
    """The pictures, by the names of their files."""
    log.write("products", [(product, 3, now_ms()) for product in PRODUCTS])
    desk = opened(browser, address, DESK, 1180, "light")
    phone = opened(browser, address, PHONE, 1100, "dark")
    rng = random.Random(1)
    for _ in range(BEFORE):
        write_orders(log, rng)
        desk.wait_for_timeout(PAUSE_MS)
    return {
        "live-page.png": taken(log, rng, desk, Labels(desk).missing),
        "live-page-phone.png": taken(log, rng, phone, Tasks(phone).missing, Tasks(phone).place),
    }


def opened(browser: Browser, address: str, width: int, height: int, scheme: Literal["light", "dark"]) -> Page:
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    page.goto(f"http://{address}/")
    return page


def now_ms() -> int:
    return int(1000 * time.time())


def write_orders(log: Log, rng: random.Random) -> None:
    now = now_ms()

    def order() -> tuple[str, int, int]:
        late_ms = rng.randrange(LATE_MS) if rng.randrange(LATE) == 0 else rng.randrange(PAUSE_MS)
        return rng.choice(PRODUCTS), -1 if rng.randrange(WRONG) == 0 else rng.randrange(1, 9), now - late_ms

    log.write("orders", [order() for _ in range(ORDERS)])


class Labels:
    """The labels on the picture of the topology."""

    def __init__(self, page: Page) -> None:
        self._page = page

    def missing(self) -> list[str]:
        """The shapes without the labels that they should have."""
        return [which for which, pattern in LABELS.items() if not self._have(which, pattern)]

    def _have(self, which: str, pattern: str) -> bool:
        texts = self._page.locator(f".badge[data-of{which}] text").all_text_contents()
        return bool(texts) and all(re.search(pattern, text) for text in texts)


class Tasks:
    """The part of the page from the tasks to the stores."""

    def __init__(self, page: Page) -> None:
        self._page = page

    def missing(self) -> list[str]:
        running = self._page.locator("#tasks .status", has_text="running")
        stores = self._page.locator("#stores tbody th")
        return [*["tasks"] * (running.count() < PARTITIONS), *["stores"] * (stores.count() < 2)]

    def place(self) -> FloatRect:
        first, last = (self._page.locator(name).bounding_box() for name in ("#tasks-title", "#lookup"))
        assert first is not None
        assert last is not None
        top, bottom = first["y"] - MARGIN, last["y"] + last["height"] + MARGIN
        return {"x": 0, "y": top, "width": PHONE, "height": bottom - top}


def taken(
    log: Log,
    rng: random.Random,
    page: Page,
    missing: Callable[[], list[str]],
    place: Callable[[], FloatRect | None] = lambda: None,
) -> bytes:
    """A picture of a moment at which the page is complete, before and after."""
    seen: list[str] = []

    def picture() -> bytes | None:
        write_orders(log, rng)
        page.wait_for_timeout(PAUSE_MS)
        seen[:] = missing()
        if seen:
            return None
        part = place()
        content = page.screenshot(clip=part, full_page=part is not None)
        return None if missing() else content

    content: bytes = eventually(picture, seen, PATIENCE_S)
    return content


if __name__ == "__main__":
    sys.exit(main())
