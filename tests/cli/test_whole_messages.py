"""Every kind of error is read as its user sees it: the whole message, which says what happened, where, why, what to do.

The texts stand in ``whole_messages/``, one a class. What differs from run to run is replaced: folders, times, ports.
"""

from __future__ import annotations

import inspect
import json
import socket
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, Message

from pystreams import Streams, errors
from pystreams.app import App
from pystreams.backfill import backfill
from pystreams.backfill.compute.executor import Report, SliceJob
from pystreams.backfill.compute.inline import InlineExecutor
from pystreams.backfill.exchange.task_outcome import TaskOutcome
from pystreams.broker.embedded import EmbeddedBroker
from pystreams.broker.embedded.membership import EmbeddedMember
from pystreams.broker.kafka.exactly_once import ExactlyOnceProducer
from pystreams.broker.kafka.failures import text
from pystreams.broker.kafka.producer import KafkaProducer
from pystreams.broker.kafka.settings import KafkaSettings
from pystreams.broker.kafka.transactions import superseded
from pystreams.broker.port import CommittedOffset
from pystreams.clock import ManualClock, SystemClock
from pystreams.errors import StreamsError
from pystreams.ids import TaskId, TopicPartition
from pystreams.runtime.restoring.load import Load
from pystreams.runtime.restoring.restore_thread import RestoreThread
from pystreams.runtime.restoring.restorer import Restorer
from pystreams.runtime.run_client import run_client
from pystreams.runtime.tasks.task import TaskStatus
from pystreams.runtime.threads.activity import PROCESS, Activity
from pystreams.runtime.threads.progress import Progress, TaskProgress, ThreadProgress
from pystreams.runtime.threads.thread_state import ThreadState
from pystreams.state.disk.directory import OFFSETS_FILE, DirectoryLock, read_json
from tests.backfill.kit import memory
from tests.cli.message_kit import normalized, raised
from tests.live.support import Line
from tests.unit.broker.log_helpers import deal
from tests.unit.serde.schema_registry_server import running

TEXTS = Path(__file__).parent / "whole_messages"
#: What users meet: all classes, but the root, which is never raised itself.
KINDS = {
    name: kind
    for name, kind in vars(errors).items()
    if inspect.isclass(kind)
    and issubclass(kind, StreamsError)
    and kind is not StreamsError
    and name[0] != "_"
}

SHOP = """
from pystreams import App

app = App("shop")
orders = app.stream("orders", key=str, value=str)
"""


class Prompt:
    """A user at a prompt in an empty folder, with topics ``orders`` and ``out``."""

    def __init__(
        self, folder: Path, pystreams: Callable[..., Any], environment: Callable[[str, str], None]
    ) -> None:
        self.folder = folder
        self.command = pystreams
        self.environment = environment
        for topic in ("orders", "out"):
            self.command("topics", "create", topic)

    def error(self, *arguments: str, stdin: str = "") -> str:
        """What a command that fails says on standard error, from ``Error:`` on."""
        ended = self.command(*arguments, stdin=stdin)
        assert ended.code, ended
        assert "Traceback" not in ended.err
        return str(ended.err[ended.err.index("Error: ") :])

    def run(self, lines: str, *arguments: str, records: str = "k:v\n") -> str:
        """The same of ``pystreams run shop.py``, with these lines in it, over these records."""
        (self.folder / "shop.py").write_text(SHOP + lines, encoding="utf-8")
        if records:
            self.command("produce", "orders", "--key-separator", ":", stdin=records)
        return self.error("run", "shop.py", "--until-caught-up", *arguments)

    def broker(self) -> EmbeddedBroker:
        """The log of the folder."""
        return EmbeddedBroker(self.folder / ".pystreams" / "log.db", SystemClock())

    def member(self, broker: EmbeddedBroker, name: str) -> EmbeddedMember:
        """One instance of the application."""
        member = broker.member(name, "shop", ["orders"], name.encode, deal("orders", 1))
        member.poll()
        return member


@pytest.fixture
def prompt(folder: Path, pystreams: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Prompt:
    return Prompt(folder, pystreams, monkeypatch.setenv)


Make = Callable[[Prompt], str]
MAKERS: dict[str, Make] = {}


def tells(kind: type[StreamsError]) -> Callable[[Make], Make]:
    """The function gives the whole message of an error of this class."""

    def register(make: Make) -> Make:
        assert MAKERS.setdefault(kind.__name__, make) is make
        return make

    return register


# The program, its settings, and where it is


@tells(errors.TopologyError)
def a_function_of_the_wrong_arity(prompt: Prompt) -> str:
    return prompt.run("def shout():\n    return 'HO'\n\norders.map_values(shout, step='shout').to('out')\n")


@tells(errors.ConfigError)
def a_misspelt_setting(prompt: Prompt) -> str:
    return prompt.run("app = App('shop', comit_interval_ms=10)\n")


@tells(errors.AppLoadError)
def a_misspelt_file(prompt: Prompt) -> str:
    (prompt.folder / "shop.py").write_text(SHOP, encoding="utf-8")
    return prompt.error("run", "shopp.py")


# Records


@tells(errors.SerializationError)
def a_value_of_another_type(prompt: Prompt) -> str:
    return prompt.run("app = App('shop')\napp.stream('orders', key=str, value=int, step='read').to('out')\n")


@tells(errors.ProcessingError)
def a_function_that_fails(prompt: Prompt) -> str:
    return prompt.run("orders.map_values(lambda order: int(order), step='number').to('out', value=int)\n")


@tells(errors.ProductionError)
def a_value_that_cannot_be_written(prompt: Prompt) -> str:
    return prompt.run("orders.map_values(str.upper, step='shout').to('out', value=int, step='write')\n")


@tells(errors.DroppedRecordError)
def a_dead_letter(prompt: Prompt) -> str:
    prompt.command("topics", "create", "dead")
    for time in ("2026-03-01T12:00:00Z", "2026-03-01T12:01:10.500Z", "2026-03-01T12:00:59Z"):
        prompt.command("produce", "orders", "--key-separator", ":", "--timestamp", time, stdin="k:v\n")
    (prompt.folder / "shop.py").write_text(
        SHOP
        + "from pystreams import TimeWindows\n"
        + "minutes = orders.group_by_key().windowed_by(TimeWindows.tumbling(60_000, grace=10_000))\n"
        + "minutes.count(name='counts', step='count')\n",
        encoding="utf-8",
    )
    settings = (
        "errors_dead_letter_queue_topic_name=dead",
        "dead_letter_dropped_records=true",
        "window_changelog_retention_ms=-1",
    )
    ended = prompt.command("run", "shop.py", "--until-caught-up", *(f"--set={one}" for one in settings))
    assert ended.code == 0, ended
    (letter,) = prompt.command("consume", "dead", "--json").lines
    return "".join(f"{name}: {text}\n" for name, text in json.loads(letter)["headers"] if "stack" not in name)


@tells(errors.DeliveryError)
def a_broker_that_does_not_answer_in_time(prompt: Prompt) -> str:
    class Nobody:
        def end_offsets(self, partitions: Any) -> dict[Any, int]:
            return {}

        def describe_topics(self, names: Any) -> dict[Any, Any]:
            return {}

    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        settings = {"bootstrap.servers": address, "enable.idempotence": True, "log_level": 0}
        producer = KafkaProducer(settings, "shop-1", SystemClock(), Nobody())
        report = Message(topic="out", partition=0, key=b"k", value=b"v")
        producer._delivered(KafkaError(KafkaError._MSG_TIMED_OUT), report)
        try:
            return raised(errors.DeliveryError, lambda: producer.commit({}, None))
        finally:
            producer.close()


# Schema registries


@tells(errors.SchemaRegistryError)
def a_schema_that_the_registry_does_not_have(prompt: Prompt) -> str:
    with running() as registry:
        prompt.environment("PYSTREAMS_SCHEMA_REGISTRY_URL", registry.url)
        return prompt.error("produce", "orders", "--value-type", "avro", stdin='{"id": 1}\n')


@tells(errors.SchemaRegistryUnavailableError)
def a_registry_that_is_away(prompt: Prompt) -> str:
    prompt.environment("PYSTREAMS_SCHEMA_REGISTRY_URL", "http://127.0.0.1:1")
    return prompt.error("produce", "orders", "--value-type", "avro", stdin='{"id": 1}\n')


# State


@tells(errors.StateError)
def a_store_that_is_not_there(prompt: Prompt) -> str:
    app = App("shop")
    app.table("orders", key=str, value=str, name="orders")
    return raised(errors.StateError, lambda: Streams(app).store("order"))


@tells(errors.FoldingError)
def a_function_that_fails_while_history_folds(prompt: Prompt) -> str:
    """The driver writes it to the log, and computes the slice again."""

    class Keeps(InlineExecutor):
        def compute(self, job: SliceJob, report: Report) -> list[TaskOutcome]:
            try:
                return super().compute(job, report)
            except errors.FoldingError as error:
                kept.append(error)
                raise

    def longest(one: str, other: str) -> str:
        return max(one, other[99])

    app, kept = App("shop"), list[errors.FoldingError]()
    app.stream("orders", key=str, value=str).group_by_key().reduce(longest, name="longest").to_stream().to(
        "out"
    )
    history = memory({"orders": [[Line(b"me", b"one", 1), Line(b"me", b"two", 2)]]}, {"out": 1})
    with pytest.raises(errors.ProcessingError):
        backfill(app, sources=history, staging=prompt.folder / "staging", executor=Keeps())
    return f"FoldingError: {kept[0]}\n"


@tells(errors.StateLockedError)
def a_task_that_another_one_holds(prompt: Prompt) -> str:
    directory = prompt.folder / "state" / "shop" / "0_1"
    held = DirectoryLock(directory)
    try:
        return raised(errors.StateLockedError, lambda: DirectoryLock(directory))
    finally:
        held.release()


@tells(errors.StateCorruptedError)
def a_file_that_is_damaged(prompt: Prompt) -> str:
    offsets = prompt.folder / OFFSETS_FILE
    offsets.write_text('{"format": 1, "off', encoding="utf-8")
    return raised(errors.StateCorruptedError, lambda: read_json(offsets))


@tells(errors.CloseTimeoutError)
def a_client_that_cannot_commit_when_it_is_stopped(prompt: Prompt) -> str:
    """A stand-in for the client: its function would have to hang."""

    class Hangs:
        finished = False
        failure = None

        def start(self, *, stop: threading.Event | None = None) -> None:
            """It has started."""

        def close(self, timeout: float | None = None) -> bool:
            return False

        def progress(self) -> Progress:
            task = TaskProgress(TaskId(0, 3), TaskStatus.RUNNING, ())
            return Progress(7, (ThreadProgress("shop-1", ThreadState.PENDING_SHUTDOWN, 7, (task,)),))

        def activities(self) -> dict[str, Activity]:
            return {"shop-1": Activity(PROCESS, 61_000.0, "0_3")}

        def caught_up(self) -> bool:
            return False

        def request_commit(self) -> None:
            """It hangs."""

    stop = threading.Event()
    stop.set()
    return raised(
        errors.CloseTimeoutError,
        lambda: run_client(Hangs(), stop, 50_000.0, until_caught_up=False, on_progress=None),
    )


@tells(errors.RestoreError)
def a_broker_that_stays_away_while_stores_are_restored(prompt: Prompt) -> str:
    """A stand-in for the restorer: the broker of the test would have to be away for five minutes."""

    class NothingComes:
        restores = True

        def step(self, budget_ms: float, wait_ms: float) -> None:
            raise errors.BrokerUnavailableError(
                "The end of a topic is not known",
                where="shop-counts-changelog-3, Kafka at 127.0.0.1:9092",
                hint="is the broker reachable?",
            )

        def task_ids(self) -> list[TaskId]:
            return [TaskId(0, 3)]

    clock, restorer = ManualClock(), cast(Restorer, NothingComes())
    thread = RestoreThread("shop-1-restore", restorer, Load(), clock, 300_000.0, lambda: None)
    thread.go_step(0.0)
    clock.advance_ms(300_000)
    return raised(errors.RestoreError, lambda: thread.go_step(0.0))


# The log


@tells(errors.BrokerError)
def a_reset_while_the_application_runs(prompt: Prompt) -> str:
    (prompt.folder / "shop.py").write_text(SHOP, encoding="utf-8")
    with closing(prompt.broker()) as broker, closing(prompt.member(broker, "one")):
        return prompt.error("reset", "shop.py")


@tells(errors.BrokerUnavailableError)
def a_kafka_that_is_away(prompt: Prompt) -> str:
    return prompt.error("topics", "list", "--bootstrap-servers", "127.0.0.1:1")


@tells(errors.SupersededError)
def a_writer_whose_id_another_process_took_over(prompt: Prompt) -> str:
    fenced = KafkaError(KafkaError._FENCED)
    error = superseded("shop-take-over-copy", "take-over, Kafka at 127.0.0.1:9092", text(fenced))
    return f"{type(error).__name__}: {error}\n"


@tells(errors.TopicError)
def a_topic_that_is_missing(prompt: Prompt) -> str:
    return prompt.run("app.stream('payments').to('out')\n", records="")


@tells(errors.OffsetOutOfRangeError)
def a_start_without_offsets_that_is_refused(prompt: Prompt) -> str:
    return prompt.run("orders.to('out')\n", "-s", "auto_offset_reset=none")


@tells(errors.RetentionError)
def records_older_than_the_retention_of_what_they_go_to(prompt: Prompt) -> str:
    prompt.command("topics", "alter", "out", "--config", "retention.ms=604800000")
    with closing(prompt.broker()) as broker, closing(broker.producer("test", "test")) as producer:
        producer.send("orders", 0, b"k", b"v", 1_357_000_000_000, ())
        producer.commit({}, None)
    return prompt.run("orders.to('out')\n", records="")


@tells(errors.TaskMigratedError)
def a_commit_of_what_another_member_holds(prompt: Prompt) -> str:
    with (
        closing(prompt.broker()) as broker,
        closing(prompt.member(broker, "one")) as member,
        closing(broker.producer("test", "test")) as producer,
    ):
        member.claim([])
        offsets = {TopicPartition("orders", 0): CommittedOffset(1)}
        return raised(errors.TaskMigratedError, lambda: producer.commit(offsets, member))


@tells(errors.TransactionEndedError)
def a_transaction_that_took_too_long(_: Prompt) -> str:
    class Nobody:
        def describe_topics(self, names: Any) -> dict[Any, Any]:
            return {}

    settings = KafkaSettings("127.0.0.1:1", exactly_once=True).exactly_once_producer("shop-1")
    connection = cast(Any, None)
    producer = ExactlyOnceProducer(
        {**settings, "log_level": 0},
        "shop-UUID-0-1",
        "shop-1",
        SystemClock(),
        cast(Any, Nobody()),
        1.0,
        connection,
    )
    producer._begun = True
    producer._begun_ms = SystemClock().monotonic_ms() - 12_000
    report = Message(topic="out", partition=0, key=b"k", value=b"v")
    producer._delivered(KafkaError(KafkaError.INVALID_PRODUCER_EPOCH), report)
    return raised(errors.TransactionEndedError, lambda: producer.commit({}, None))


@pytest.mark.parametrize("name", KINDS)
def test_the_whole_message(name: str, prompt: Prompt) -> None:
    told = normalized(MAKERS[name](prompt), folder=prompt.folder, test=Path(__file__))
    assert told == (TEXTS / f"{name}.txt").read_text(encoding="utf-8")


def test_every_kind_of_error_has_its_text() -> None:
    assert MAKERS.keys() == KINDS.keys()
    assert {path.stem for path in TEXTS.iterdir()} == KINDS.keys()
