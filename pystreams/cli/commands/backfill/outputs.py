"""Parses ``--hand-over`` and ``--emit``: the targets of the results of ``pystreams backfill``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from pystreams.backfill.locations import absolute, shown
from pystreams.clock import SystemClock
from pystreams.errors import BrokerUnavailableError, ConfigError
from pystreams.nearest import did_you_mean

if TYPE_CHECKING:
    from pystreams.backfill.sources import DataFrameSource
    from pystreams.broker.port import Broker
    from pystreams.config import StreamsConfig

Target = Literal["kafka", "embedded", "snapshot", "none"]
EmitTo = Literal["topic", "parquet", "none"]


@dataclass(frozen=True, slots=True)
class HandOver:
    """``--hand-over``. ``folder`` is where a snapshot goes; empty: below the staging folder."""

    to: Target
    folder: str = ""

    def check(self, config: StreamsConfig, *, approximate: bool) -> None:
        """Raises ``ConfigError`` for results that cannot be handed over."""
        if self.to == "kafka" and config.bootstrap_servers is None:
            raise ConfigError(
                "--hand-over kafka needs the addresses of a Kafka cluster",
                hint="add --bootstrap-servers HOST:PORT, or hand over to the embedded log: --hand-over "
                "embedded",
            )
        if approximate and self.to != "none":
            raise ConfigError(
                f"--hand-over {self.to} does not go with --approximate",
                why="without offsets the backfill does not know from where the live application has to "
                "continue",
                hint="backfill from an archive with offsets (pystreams archive creates one), or leave one of "
                "them out",
            )

    def check_tables(self, tables: Mapping[str, DataFrameSource]) -> None:
        """Raises ``ConfigError`` for results from tables that cannot be handed over."""
        without = sorted(topic for topic, table in tables.items() if not table.exact)
        if self.to != "none" and without:
            raise ConfigError(
                f"--hand-over {self.to} needs offsets: topic {without[0]} comes from a table without them",
                why="without offsets the backfill does not know from where the live application has to continue",
                hint="name the columns that have them: &partition=NAME&offset=NAME; or the time from which on the log "
                "counts: --boundary TIME",
            )

    def place(self, config: StreamsConfig, staging: str) -> str:
        """The target, as messages show it."""
        match self.to:
            case "kafka" | "embedded":
                return log_for(self.to, config)
            case "snapshot":
                return f"snapshot in {shown(self.snapshot(staging))}"
            case "none":
                return "nowhere"

    def snapshot(self, staging: str) -> str:
        """The folder of a snapshot, as a path that workers can open."""
        return absolute(self.folder or f"{staging.rstrip('/')}/snapshot")


@dataclass(frozen=True, slots=True)
class Emit:
    """``--emit``. ``folder`` is where files go."""

    to: EmitTo
    folder: str = ""

    @property
    def place(self) -> str:
        """The target, as messages show it: the folder, or the topics."""
        return shown(self.folder) or "their topics"


def parse_hand_over(text: str) -> HandOver:
    """Raises ``ConfigError`` for a text that does not name a target."""
    target, colon, folder = text.partition(":")
    targets: tuple[Target, ...] = get_args(Target)
    for known in targets:
        if target == known and (known == "snapshot" or not colon):
            return HandOver(known, folder)
    raise ConfigError(
        f"--hand-over {shown(text)!r} is not a target of a hand-over",
        hint=did_you_mean(target, targets) or "write kafka, embedded, snapshot:FOLDER or none",
    )


def parse_emit(text: str) -> Emit:
    """Raises ``ConfigError`` for a text that does not name a target for records."""
    target, colon, folder = text.partition(":")
    if target == "parquet" and folder:
        return Emit("parquet", folder)
    if target == "topic" and not colon:
        return Emit("topic")
    if target == "none" and not colon:
        return Emit("none")
    missing = "parquet needs a folder: --emit parquet:FOLDER" if target == "parquet" else ""
    near = did_you_mean(target, ("topic", "parquet", "none"))
    raise ConfigError(
        f"--emit {shown(text)!r} is not a target for records",
        hint=missing or near or "write topic, parquet:FOLDER or none",
    )


def log_for(target: Target, config: StreamsConfig) -> str:
    """The log that ``open_target`` opens, as messages show it."""
    if target != "embedded" and config.bootstrap_servers is not None:
        return f"Kafka at {config.bootstrap_servers}"
    return f"embedded log at {config.embedded_log}"


@contextmanager
def open_target(target: Target, config: StreamsConfig) -> Iterator[Broker]:
    """The log to hand over to: ``kafka`` or ``embedded``; for ``none`` and ``snapshot`` the one that the application
    runs on. Raises ``BrokerUnavailableError`` if it is not there."""
    from pystreams.broker.connecting import open_broker
    from pystreams.broker.embedded import EmbeddedBroker

    clock = SystemClock()
    on_kafka = target != "embedded" and config.bootstrap_servers is not None
    if not on_kafka and not config.embedded_log.exists():
        raise BrokerUnavailableError(
            f"There is no embedded log at {config.embedded_log}",
            where=f"looked for it from {Path.cwd()}",
            hint="the log of the live application must exist, with its topics: create it with pystreams "
            "topics create NAME, or name its file: --embedded-log FILE",
        )
    broker = open_broker(config, clock) if on_kafka else EmbeddedBroker(config.embedded_log, clock)
    try:
        yield broker
    finally:
        broker.close()
