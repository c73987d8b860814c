"""Parses ``--hand-over`` and ``--emit``: the targets of the results of ``pystreams backfill``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from os import fspath
from typing import TYPE_CHECKING, Literal, get_args

from pystreams.backfill.locations import absolute, overlapping, shown
from pystreams.cli.masters import AUTO, SPARK_HERE, Master
from pystreams.clock import SystemClock
from pystreams.errors import ConfigError
from pystreams.nearest import did_you_mean

if TYPE_CHECKING:
    from pystreams.backfill.handover.emit_to_tables import Table
    from pystreams.backfill.sources import DataFrameSource
    from pystreams.broker.port import Broker
    from pystreams.config import StreamsConfig

Target = Literal["kafka", "embedded", "snapshot", "none"]
EmitTo = Literal["topic", "parquet", "none"]
TableKind = Literal["parquet", "iceberg", "delta"]
TABLE_KINDS: tuple[TableKind, ...] = get_args(TableKind)


@dataclass(frozen=True, slots=True)
class HandOver:
    """``--hand-over``. ``folder`` is where a snapshot goes; empty: below the staging folder."""

    to: Target
    folder: str = ""

    def check(self, config: StreamsConfig, *, approximate: bool) -> None:
        """Raises ``ConfigError`` for results that cannot be handed over."""
        if self.to == "kafka" and not config.on_kafka:
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
    """All ``--emit``. ``folder`` is where files go, ``tables`` are those of some topics."""

    to: EmitTo = "none"
    folder: str = ""
    tables: Mapping[str, Table] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """The target of all topics, as messages show it: the folder, or the topics."""
        return shown(self.folder) or "their topics"

    @property
    def spark_tables(self) -> dict[str, Table]:
        """The tables that only Spark writes."""
        from pystreams.backfill.sources import SparkTable

        return {topic: table for topic, table in self.tables.items() if isinstance(table, SparkTable)}

    def check(self, master: str) -> None:
        """Raises ``ConfigError`` for a master that cannot write the tables."""
        if master == AUTO or Master(master).is_spark:
            return
        for topic, table in self.spark_tables.items():
            raise ConfigError(
                f"{shown_table(table)} is a table that Spark writes, and --master {master} runs without Spark",
                hint=f"name Spark's master (--master '{SPARK_HERE}'), or write Parquet files: --emit "
                f"{topic}=parquet:FOLDER",
            )


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


def parse_emits(texts: Sequence[str]) -> Emit:
    """All ``--emit``. Raises ``ConfigError`` for one that does not name a target, for two of one topic or of all
    topics, and for a folder that is to be both an archive and a table, or in one."""
    found = Emit()
    tables: dict[str, Table] = {}
    named: dict[str | None, str] = {}
    for text in texts:
        # A folder may be called run=3: a path before the sign does not name a topic.
        before, equals, after = text.partition("=")
        topic = before.strip() if equals and not re.search(r"[:/\\]", before) else None
        if topic in named:
            what = "all topics" if topic is None else f"topic {topic}"
            raise ConfigError(
                f"the records for {what} cannot be emitted to two places",
                why=f"they are {named[topic]} and {shown(text)}",
                hint="name each topic once, and one place at most for all topics",
            )
        named[topic] = shown(text)
        if topic is None:
            found = _for_all(text)
        else:
            tables[topic] = _table(text, topic, after)
    if found.folder and tables:
        _require_apart(found.folder, tables)
    return replace(found, tables=tables)


def _require_apart(archive: str, tables: Mapping[str, Table]) -> None:
    from pystreams.backfill.handover.emit_to_tables import in_catalog, place_of

    for topic, table in tables.items():
        if not in_catalog(table) and overlapping(place_of(table), archive):
            raise ConfigError(
                f"{shown(place_of(table))} cannot be both an archive of all topics and a table of topic {topic}, nor "
                "can one be in the other",
                why=f"the archive is {shown(archive)}",
                hint="name two folders, neither of which is in the other",
            )


def _for_all(text: str) -> Emit:
    """``topic``, ``parquet:FOLDER`` or ``none``. Raises ``ConfigError`` for anything else."""
    target, colon, folder = text.partition(":")
    if target == "parquet" and folder:
        return Emit("parquet", folder)
    if target == "topic" and not colon:
        return Emit("topic")
    if target == "none" and not colon:
        return Emit()
    raise ConfigError(f"--emit {shown(text)!r} is not a target for records", hint=_meant(target))


def _meant(target: str) -> str:
    """The hint for the text before the colon of a target that is none."""
    if target == "parquet":
        return "parquet needs a folder: --emit parquet:FOLDER"
    if target in TABLE_KINDS:
        return f"say for which topic the table is: --emit TOPIC={target}:PLACE"
    near = did_you_mean(target, ("topic", "parquet", "none"))
    return near or "write topic, parquet:FOLDER, TOPIC=KIND:PLACE or none"


def _table(text: str, topic: str, target: str) -> Table:
    """``KIND:PLACE``. Raises ``ConfigError`` for anything else."""
    from pystreams.backfill.sources import SparkTable

    kind, _, place = target.partition(":")
    if kind in TABLE_KINDS and topic and place:
        if kind == "parquet":
            return place
        # With a slash it is a path for Iceberg, too, else a name in a catalog.
        return SparkTable(kind, absolute(place) if kind == "delta" or "/" in place else place)
    raise ConfigError(
        f"--emit {shown(text)!r} does not name a topic and its table",
        why=_why_no_table(topic, kind),
        hint=_meant_for_topic(kind) or "write TOPIC=KIND:PLACE, as in --emit revenue=parquet:/tables/revenue",
    )


def _why_no_table(topic: str, kind: str) -> str:
    if kind in ("topic", "none"):
        return f"{kind} is for all topics"
    if kind not in TABLE_KINDS:
        return f"{kind!r} is not one of {', '.join(TABLE_KINDS)}"
    return f"{kind} needs a place" if topic else "there is no topic before the equals sign"


def _meant_for_topic(kind: str) -> str:
    if kind in ("topic", "none"):
        return f"write --emit {kind}, without a topic"
    return "" if kind in TABLE_KINDS else did_you_mean(kind, TABLE_KINDS)


def shown_table(table: Table) -> str:
    """A table, as messages show it."""
    from pystreams.backfill.sources import SparkTable

    return table.description if isinstance(table, SparkTable) else f"parquet {shown(fspath(table))}"


def opens_kafka(target: Target, config: StreamsConfig) -> bool:
    """Whether ``open_target`` opens Kafka, and not the embedded log."""
    return target != "embedded" and config.on_kafka


def log_for(target: Target, config: StreamsConfig) -> str:
    """The log that ``open_target`` opens, as messages show it."""
    if opens_kafka(target, config):
        return f"Kafka at {config.bootstrap_servers}"
    return f"embedded log at {config.embedded_log}"


@contextmanager
def open_target(target: Target, config: StreamsConfig) -> Iterator[Broker]:
    """The log to hand over to: ``kafka`` or ``embedded``; for ``none`` and ``snapshot`` the one that the application
    runs on. Raises ``BrokerUnavailableError`` if it is not there."""
    from pystreams.broker.connecting import open_broker
    from pystreams.broker.embedded import EmbeddedBroker
    from pystreams.broker.missing_log import check_embedded_log

    clock = SystemClock()
    on_kafka = opens_kafka(target, config)
    if not on_kafka:
        check_embedded_log(
            config.embedded_log,
            "the log of the live application must exist, with its topics: create it with pystreams topics create "
            "NAME, or name its file: --embedded-log FILE",
        )
    broker = open_broker(config, clock) if on_kafka else EmbeddedBroker(config.embedded_log, clock)
    try:
        yield broker
    finally:
        broker.close()
