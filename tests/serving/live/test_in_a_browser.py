"""The live page in a real browser moves while the application works; names and errors do not become a part of it."""

from __future__ import annotations

import itertools
import re
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from pystreams import JoinWindows, Streams, TimeWindows
from pystreams.ids import TopicPartition
from pystreams.serving.address import Address
from pystreams.serving.server import HttpServer
from pystreams.serving.stores.local import LocalStores
from pystreams.serving.watched import WatchedClient
from tests.live.support import Log, caught_up, eventually
from tests.serving.http_kit import get
from tests.serving.live.conftest import PATIENCE_MS
from tests.serving.live.test_state_and_events import Counted
from tests.serving.test_run_http import Run

pytestmark = [pytest.mark.live, pytest.mark.slow]

HOSTILE = "<img src=/missing onerror=document.title='taken'>"

#: Its workers begin when there is a file ``go``.
COUNTING = """
import sys, time
from pathlib import Path
from pystreams import App

while "worker" in sys.argv[0] and not Path("go").exists():
    time.sleep(0.01)
app = App("counting", poll_ms=10)
app.stream("in", key=str, value=int).group_by_key().count(name="counts").to_stream().to("out")
"""

expect.set_options(timeout=PATIENCE_MS)


#: A record that is late for these windows is dropped.
WINDOWS = TimeWindows.tumbling(timedelta(seconds=10), grace=timedelta(0))


def counting(log: Log, process: str = "one", *, windows: TimeWindows | None = None, **settings) -> Streams:
    """Counts by key, and also in windows; values of 0 fail."""
    settings = {"processing_exception_handler": "continue", **settings}
    app = log.app("counting", state_dir=log.path / process, commit_interval_ms=100, **settings)

    def check(value: int) -> int:
        if value == 0:
            raise ValueError(HOSTILE)
        return value

    checked = app.stream("in", key=str, value=int).map_values(check, value=int)
    checked.group_by_key().count(name="counts").to_stream().to("out")
    if windows is not None:
        checked.group_by_key().windowed_by(windows).count(name="windows", step="counted-in-windows")
    return Streams(app, broker=log.broker)


@contextmanager
def shown(streams: Streams, token: str | None = None) -> Iterator[Address]:
    watched = WatchedClient(streams, None)
    server = HttpServer(Address.parse("127.0.0.1:0"), watched, LocalStores(streams), token=token)
    with server, closing(streams):
        yield server.address


def row(page: Page, task: str) -> Locator:
    return page.locator("#tasks tbody tr").filter(has=page.get_by_role("rowheader", name=task, exact=True))


def badge(page: Page, name: str) -> Locator:
    """The label at a shape whose name begins so."""
    return page.locator(f".badge[data-of^='{name}']")


def figures(label: Locator) -> Locator:
    """What can be read on it."""
    return label.locator("text")


def number(element: Locator) -> float:
    text = (element.text_content() or "").replace(",", "")
    return float(text) if re.fullmatch(r"[\d.]+", text) else 0.0


def test_rates_and_totals_move_while_records_arrive(log, visit):
    log.create("in", "out", partitions=2)
    with shown(streams := counting(log)) as address:
        streams.start()
        page = visit(address)
        expect(page.get_by_role("heading", level=1)).to_have_text("counting")
        expect(page.locator("#health")).to_have_text("Ready")
        seconds = itertools.count(1)

        def moves() -> bool:
            second = next(seconds)
            for partition in (0, 1):
                log.write("in", [(str(n), 1, 1000 * second) for n in range(50)], partition=partition)
            page.wait_for_timeout(250)
            cells = row(page, "0_0").get_by_role("cell")
            return number(page.locator("#rate")) > 0 and number(cells.nth(2)) > 0

        eventually(moves)
        before = number(page.locator("#processed"))
        eventually(lambda: moves() and number(page.locator("#processed")) > before)
        expect(page.locator(".badge[data-of='in']")).to_contain_text("lag")
        for end in (
            page.locator(".badge.of-frame"),
            badge(page, "KSTREAM-SOURCE"),
            badge(page, "KSTREAM-SINK"),
        ):
            expect(figures(end)).to_have_text(re.compile(r"^[\d.,]*[1-9][\d.,]*/s"))
            expect(end).to_have_attribute("aria-label", re.compile(r"[1-9][\d.,]* records a second"))
        expect(page.locator(".badge[data-of='counts']")).to_be_visible()


def test_records_of_internal_topics_are_counted_apart(log, visit):
    log.create("in", partitions=2)
    app = log.app("regrouping", commit_interval_ms=100)
    app.stream("in", key=str, value=int).group_by(lambda key, value: value, key=int).count(name="counts")
    with shown(streams := Streams(app, broker=log.broker)) as address:
        streams.start()
        log.write("in", [("a", 1, 1), ("b", 2, 2), ("c", 2, 3)])
        caught_up(streams)
        page = visit(address)
        expect(page.locator("#processed")).to_have_text("3")
        expect(page.locator("#processed-note")).to_have_text(
            re.compile(r"^records since .* UTC, and 3 from internal topics$")
        )


def test_a_stream_time_ahead_of_the_clock_is_marked_and_a_far_year_is_readable(log, visit):
    log.create("in", "out", partitions=2)
    in_microseconds = 1_795_773_600_000_000
    log.write("in", [("a", 1, 1_700_000_000_000)], partition=0)
    log.write("in", [("b", 1, in_microseconds)], partition=1)
    with shown(streams := counting(log)) as address:
        streams.start()
        caught_up(streams)
        page = visit(address)
        tile = page.locator(".tile").filter(has=page.locator("#stream-time"))
        expect(tile).to_have_attribute("data-status", "warn")
        expect(page.locator("#stream-time")).to_have_text("16:00:00")
        expect(page.locator("#stream-time-note")).to_contain_text("58875-10-19 UTC; ahead of the clock")
        expect(row(page, "0_1").locator(".when")).to_have_text("58875-10-19 16:00:00")
        colour = page.evaluate("getComputedStyle(document.querySelector('.tile[data-status] dd')).color")
        expect(row(page, "0_1").locator(".when")).to_have_css("color", colour)
        expect(row(page, "0_0").locator(".when")).not_to_have_attribute("data-status", "warn")


def test_a_join_in_which_no_record_finds_anything_is_marked_until_one_does(log, visit):
    log.create("orders", "prices", "sums")
    app = log.app("joins")
    prices = app.table("prices", key=str, value=int)
    orders = app.stream("orders", key=str, value=int)
    orders.join(prices, lambda order, price: order * price, value=int, step="priced").to("sums")
    log.write("orders", [("apple", 1, n) for n in range(12)])
    with shown(streams := Streams(app, broker=log.broker)) as address:
        streams.start()
        caught_up(streams)
        page = visit(address)
        label = page.locator(".badge[data-of='priced']")
        expect(label).to_have_text(re.compile("^finds nothing"))
        expect(label).to_have_attribute("data-status", "warn")
        expect(label).to_have_attribute(
            "aria-label", re.compile("none of 12 records found a row in table prices; look whether")
        )
        log.write("prices", [("apple", 3, 0)])
        caught_up(streams)
        log.write("orders", [("apple", 1, 20)])
        expect(label).to_have_count(0)


def test_the_share_of_reads_that_a_cache_has_answered_is_exact_at_the_level_debug(log, visit):
    log.create("in", "out")
    log.write("in", [(str(n % 5), 1, n) for n in range(100)])
    app = log.app("joined", metrics_recording_level="DEBUG")
    numbers = app.stream("in", key=str, value=int)
    counts = numbers.group_by_key().count(name="counts")
    numbers.join(counts, lambda one, count: one + count, value=int).to("out")
    with shown(streams := Streams(app, broker=log.broker)) as address:
        streams.start()
        caught_up(streams)
        page = visit(address)
        stores = page.locator("#stores tbody tr").filter(has_text="counts")
        # Of 200 reads the first of each key has found nothing.
        expect(stores.get_by_role("cell").last).to_have_text("98 %")
        expect(page.locator(".badge[data-of='counts']")).to_contain_text("98 % hits")


def looked_up(page: Page, key: str, value: str) -> None:
    """The page looks a key up in the store."""
    page.get_by_label("Store", exact=True).select_option("counts")
    page.get_by_label("Key", exact=True).fill(key)
    page.get_by_role("button", name="Look up").click()
    expect(page.locator("#lookup-answer")).to_contain_text(value)


def test_the_number_of_entries_is_shown_as_the_estimate_that_it_is_and_a_key_is_looked_up(log, visit):
    log.create("in", "out")
    log.write("in", [("a", 1, n) for n in range(10)])
    with shown(streams := counting(log)) as address:
        streams.start()
        caught_up(streams)
        page = visit(address)
        entries = page.locator("#stores tbody tr").filter(has_text="counts").get_by_role("cell").first
        expect(entries).to_have_text(re.compile(r"^≈ \d+$"))
        expect(entries).to_have_attribute("title", re.compile("^RocksDB's estimate"))
        expect(page.locator(".badge[data-of='counts']")).to_have_text(re.compile(r"^≈ \d+"))
        looked_up(page, "a", "10")


def test_a_partition_that_lags_and_a_task_that_is_behind_are_seen(log, visit):
    log.create("in", "out", partitions=2)
    with shown(streams := counting(log)) as address:
        streams.start()
        log.write("in", [("a", 1, 1_000)], partition=0)
        log.write("in", [("a", 1, 91_000)], partition=1)
        caught_up(streams)
        page = visit(address)
        expect(row(page, "0_0").locator(".when")).to_have_text("1 min 30 s behind")
        expect(row(page, "0_1").locator(".when")).to_contain_text("00:01:31")
        streams.pause()
        log.write("in", [("a", 1, 2_000 + n) for n in range(17)], partition=0)
        expect(row(page, "0_0").get_by_role("cell").nth(3)).to_have_text("17")
        expect(row(page, "0_1").get_by_role("cell").nth(3)).to_have_text("0")
        expect(page.locator("#lag")).to_have_text("17")
        bars = page.locator("#inputs").get_by_role("img")
        expect(bars).to_have_attribute("aria-label", "lag by partition: 0: 17, 1: 0")


class Holding:
    """A listener that holds the restore up after its first batch."""

    def __init__(self) -> None:
        self.go_on = threading.Event()

    def on_restore_start(self, partition: TopicPartition, store: str, start: int, end: int) -> None:
        self.go_on.wait(PATIENCE_MS / 1000)

    def on_batch_restored(self, partition: TopicPartition, store: str, offset: int, records: int) -> None:
        """The first one was held up."""

    def on_restore_end(self, partition: TopicPartition, store: str, records: int) -> None:
        """The first one was held up."""


def test_a_task_that_restores_is_seen_until_it_runs(log, visit):
    log.create("in", "out")
    log.write("in", [(str(n), 1, n) for n in range(100)])
    with closing(streams := counting(log)):
        streams.start()
        caught_up(streams)
    shutil.rmtree(log.path / "one")
    holding = Holding()
    streams = counting(log)
    streams.set_restore_listener(holding)
    with shown(streams) as address:
        streams.start()
        try:
            page = visit(address)
            task = row(page, "0_0")
            expect(task.locator(".status")).to_have_text("restoring 0 %")
            expect(task.get_by_role("progressbar")).to_have_attribute("aria-label", re.compile("of 100$"))
            expect(page.locator("#health")).to_have_text("Not ready")
            expect(page.locator("#reasons")).to_contain_text("restores 0_0")
        finally:
            holding.go_on.set()
        expect(task.locator(".status")).to_have_text("running")
        expect(task.get_by_role("progressbar")).to_have_count(0)
        expect(page.locator("#health")).to_have_text("Ready")


def test_what_failed_is_shown_with_its_reason_and_stays_text(log, visit):
    log.create("in", "out")
    with shown(streams := counting(log)) as address:
        streams.start()
        page = visit(address)
        log.write("in", [("a", 1, 1), ("a", 0, 2), ("a", 0, 3)])
        expect(page.locator("#left-out")).to_have_text("2")
        reason = page.locator("#reasons-left-out").get_by_role("row").nth(1)
        expect(reason).to_contain_text("skipped: processing failed with ValueError")
        expect(page.locator("#failures li")).to_have_count(2)
        expect(page.locator("#failures .error").first).to_contain_text(HOSTILE)
        expect(page.locator(".badge[data-status='bad']")).to_contain_text("2 failed")
        assert page.locator("img").count() == 0
        assert page.title() == "counting · pystreams"


def test_late_records_and_dead_letters_are_seen_at_their_steps_and_in_the_state(log, visit):
    log.create("in", "out", "dead")
    moving = {
        "processing_exception_handler": "dead_letter",
        "errors_dead_letter_queue_topic_name": "dead",
    }
    with shown(streams := counting(log, windows=WINDOWS, **moving)) as address:
        streams.start()
        log.write("in", [("a", 1, 1_000), ("a", 0, 2_000), ("a", 1, 15_000), ("a", 1, 4_000)])
        page = visit(address)
        label = badge(page, "counted-in-windows")
        expect(figures(label)).to_have_text("1 late")
        expect(label).to_have_attribute("data-status", "warn")
        # 5,001 ms: with a grace of five seconds the window would be closed, too.
        expect(label).to_have_attribute(
            "aria-label",
            "counted-in-windows: 1 record too late, by 11 s at most; a grace of 6 s would keep them",
        )
        failed = badge(page, "KSTREAM-MAPVALUES")
        expect(figures(failed)).to_have_text("1 failed")
        expect(failed).to_have_attribute("data-status", "bad")
        expect(failed).to_have_attribute("aria-label", re.compile(": 1 dead letter, 0 skipped$"))
        expect(page.locator("#left-out-note")).to_have_text(
            "1 moved to the dead-letter topic dead, 1 dropped"
        )
        rows = page.locator("#reasons-left-out tbody tr")
        expect(rows.filter(has_text="moved to the dead-letter topic: processing failed")).to_have_count(1)
        expect(rows.filter(has_text="dropped: ").filter(has_text="counted-in-windows")).to_have_count(1)
        (client,) = get(address, "/state").json["clients"]
    steps = {step["step"]: step for step in client["steps"]}
    in_windows, check = (
        next(look for step, look in steps.items() if step.startswith(name))
        for name in ("counted-in-windows", "KSTREAM-MAPVALUES")
    )
    late = ("late", "late_ms", "grace_ms", "dropped", "late_dropped")
    assert [in_windows[name] for name in late] == [1, 11_000, 5_001, 1, 1]
    assert [check[name] for name in ("late", "dropped", "skipped", "dead_letters")] == [0, 0, 0, 1]
    assert client["left_out"] == {"moved to the dead-letter topic dead": 1, "dropped": 1}


def test_what_a_join_drops_is_seen_beside_what_was_only_too_late_for_its_partners(log, visit):
    log.create("left", "right", "out")
    app = log.app("joins", window_changelog_retention_ms=-1)
    left, right = (app.stream(topic, key=str, value=int) for topic in ("left", "right"))
    windows = JoinWindows.of(timedelta(seconds=10))
    left.join(right, lambda one, other: one + other, windows=windows, value=int, step="pairs").to("out")
    log.write("left", [("a", 1, 0), ("a", 1, 30_000)])
    log.write("right", [("a", 1, 0), (None, 1, 31_000), ("a", 1, 5)])
    with shown(streams := Streams(app, broker=log.broker)) as address:
        streams.start()
        label = badge(visit(address), "pairs-other")
        expect(figures(label)).to_have_text("1 late · 1 dropped")
        expect(label).to_have_attribute("data-status", "warn")


def test_names_of_a_program_stay_text_from_the_first_paint_on(log, visit):
    log.create("in", "out")
    app = log.app("naming")
    app.stream(re.compile(HOSTILE), key=str, value=int).to("out")
    with shown(Streams(app, broker=log.broker)) as address:
        page = visit(address, java_script_enabled=False)
        assert page.locator("img").count() == 0
        assert page.title() == "pystreams · pystreams"


def test_it_fits_a_phone_and_a_desk_in_light_and_dark(log, visit):
    log.create("in", "out", partitions=2)
    with shown(streams := counting(log)) as address:
        streams.start()
        log.write("in", [("a", 1, 1), ("a", 0, 2)])
        for width in (360, 1280):
            page = visit(address, width)
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                expect(page.locator("#failures li")).to_have_count(1)
                assert page.evaluate("document.documentElement.scrollWidth") == width
                red, green, blue = page.evaluate(
                    "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number)"
                )
                assert (red + green + blue > 3 * 128) is (scheme == "light")


def test_the_keyboard_reaches_the_figures_of_the_picture(log, visit):
    log.create("in", "out")
    with shown(streams := counting(log)) as address:
        streams.start()
        page = visit(address)
        # Figures are shown as they become known.
        lag, tasks = re.compile(r"^in: lag "), re.compile(r"^Sub-topology 0: 1 task")
        expect(page.locator(".badge[data-of='in']")).to_have_attribute("aria-label", lag)
        expect(page.locator(".badge.of-frame")).to_have_attribute("aria-label", tasks)
        page.locator("#topology").focus()
        spoken = set()
        for _ in range(10):
            page.keyboard.press("Tab")
            spoken.add(page.evaluate("document.activeElement.getAttribute('aria-label') ?? ''"))
        assert any(map(lag.search, spoken)), spoken
        assert any(map(tasks.search, spoken)), spoken


def test_a_browser_that_knows_the_token_reads_the_page_and_its_events(log, visit):
    log.create("in", "out")
    token = "0123456789abcdef-of-a-test"
    with shown(streams := counting(log), token) as address:
        page = visit(address, may_lose=True, http_credentials={"username": "ann", "password": token})
        expect(page.locator("#health")).not_to_have_text("Ready")
        streams.start()
        expect(page.locator("#health")).to_have_text("Ready")


def hide(page: Page, *, hidden: bool) -> None:
    """As a browser does when its user goes to another tab, and comes back."""
    page.evaluate(
        """hidden => {
            Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
            document.dispatchEvent(new Event("visibilitychange"));
        }""",
        hidden,
    )


def test_a_tab_that_is_not_seen_asks_nothing(visit):
    counted = Counted()
    with HttpServer(Address.parse("127.0.0.1:0"), counted) as server:
        page = visit(server.address)
        eventually(lambda: counted.looks > 2)
        hide(page, hidden=True)
        eventually(lambda: server._live_page.events._open == 0)
        looks = counted.looks
        # A stream that was open would have had events within this time.
        page.wait_for_timeout(3_000)
        assert counted.looks == looks
        hide(page, hidden=False)
        eventually(lambda: counted.looks > looks)
        page.close()
        eventually(lambda: server._live_page.events._open == 0)


def test_the_state_can_be_read_without_scripts(log, visit):
    log.create("in", "out", partitions=2)
    with shown(streams := counting(log)) as address:
        streams.start()
        log.write("in", [("a", 1, 1)], partition=0)
        caught_up(streams)
        page = visit(address, java_script_enabled=False)
        expect(page.locator("#health")).to_have_text("Ready")
        expect(page.locator("#processed")).to_have_text("1")
        expect(row(page, "0_1")).to_contain_text("running")
        expect(page.locator("#topology svg")).to_be_visible()
        expect(page.locator("noscript")).to_be_visible()


def test_what_is_shown_is_known_to_be_old_when_the_application_is_gone(log, visit):
    log.create("in", "out")
    with shown(streams := counting(log)) as address:
        streams.start()
        page = visit(address, may_lose=True)
        expect(page.locator("#rate")).to_have_text("0")
        expect(page.locator("#connection")).to_be_hidden()
    expect(page.locator("#connection")).to_have_text("No answer; what is shown is old")


def served(folder: Path, *arguments: str) -> Run:
    (folder / "counting.py").write_text(COUNTING, encoding="utf-8")
    return Run(folder, "counting", "--http", "127.0.0.1:0", *arguments)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    """A run of the command line, with records to count."""
    (tmp_path / ".pystreams").mkdir()
    log = Log(tmp_path / ".pystreams")
    log.create("in", "out", partitions=4)
    for partition in range(4):
        log.write("in", [(f"key {partition}", 1, 1_000 * partition) for _ in range(5)], partition=partition)
    runs: list[Run] = []

    def start(*arguments: str) -> Run:
        runs.append(served(tmp_path, *arguments))
        return runs[-1]

    yield start
    for one in runs:
        one.close()
    log.close()


def test_one_page_shows_all_workers_and_who_opens_it_before_they_run_can_look_keys_up_later(
    run, visit, tmp_path
):
    workers = run("--workers", "2")
    page = visit(workers.address)
    expect(page.locator("#health")).to_have_text("Not ready")
    # The page would have got this answer, too.
    assert get(workers.address, "/stores").status == 503
    expect(page.get_by_label("Store", exact=True)).to_be_hidden()
    (tmp_path / "go").touch()
    expect(page.get_by_label("Store", exact=True)).to_be_visible()
    expect(page.locator("#health")).to_have_text("Ready")
    expect(page.locator("#tasks tbody tr")).to_have_count(4)
    expect(page.locator("#processed")).to_have_text("20")
    expect(page.locator("#instances").get_by_role("heading")).to_have_text(["worker 1", "worker 2"])
    expect(page.locator("#tasks .where", has_text="worker 1")).to_have_count(2)
    expect(page.locator(".badge.of-frame")).to_have_attribute(
        "aria-label", re.compile("^Sub-topology 0: 4 tasks")
    )
    looked_up(page, "key 2", "5")
    page.close()
    workers.send(signal.SIGTERM)
    workers.ends_with(0)
