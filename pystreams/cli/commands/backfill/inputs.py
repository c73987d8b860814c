"""Parses ``--source`` and ``--until``: the input of ``pystreams backfill``, and where reading ends."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args
from urllib.parse import parse_qsl

from pystreams.backfill.locations import shown
from pystreams.backfill.plan.moments import MILLISECONDS_MIN, ambiguous, moment_ms
from pystreams.errors import BrokerUnavailableError, ConfigError
from pystreams.ids import TopicPartition
from pystreams.nearest import did_you_mean, did_you_mean_this, nearest, not_among
from pystreams.times import read_time

if TYPE_CHECKING:
    from pystreams.backfill.plan.cut import Until
    from pystreams.backfill.sources import DataFrameSource, Source

Kind = Literal["kafka", "embedded", "parquet", "json", "csv", "table", "iceberg", "delta", "orc", "jdbc"]
KINDS: tuple[Kind, ...] = get_args(Kind)

_FILES: tuple[Kind, ...] = ("parquet", "json", "csv")
_EXAMPLE = "--source orders=parquet:/archive/orders"
#: Tables that `pystreams archive` writes; with the names of columns they are tables like others.
_ARCHIVES: tuple[Kind, ...] = ("iceberg", "delta")
#: Kinds that are tables; files are, too, if their columns are named.
_TABLES: tuple[Kind, ...] = ("table", "iceberg", "delta", "orc", "jdbc")
_TABLE_EXAMPLE = "--source 'orders=table:shop.orders?key=customer&timestamp=at'"
#: Options about a table's columns; other names are options of Spark's reader.
_COLUMNS = ("key", "value", "timestamp", "partition", "offset", "partitions")

_OFFSET = re.compile(r"\s*(?P<topic>.+)-(?P<partition>\d+)\s*=\s*(?P<offset>\d+)\s*")


@dataclass(frozen=True, slots=True)
class SourceText:
    """One ``--source``. ``topic`` None: it is the source of all topics that have none of their own."""

    topic: str | None
    kind: Kind
    #: A folder, the file of an embedded log, Kafka's addresses, or the name or folder of a table; empty: the place that
    #: the other options give.
    place: str
    #: For tables: the columns, the number of partitions, and options of Spark's reader; empty for other kinds.
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        return f"{self.kind} {shown(self.place)}".rstrip()


def parse_source(text: str) -> SourceText:
    """``[TOPIC=]KIND[:PLACE]``. Raises ``ConfigError`` for another text."""
    before, equals, after = text.partition("=")
    # An archive's folders may be called topic=orders: a path before the sign does not name a topic.
    named = bool(equals) and not re.search(r"[:/\\]", before)
    topic, rest = (before.strip(), after) if named else (None, text)
    kind, _, place = rest.partition(":")
    if kind not in KINDS or topic == "":
        raise ConfigError(
            f"--source {shown(text)!r} does not name a source",
            why=f"{kind!r} is not one of {', '.join(KINDS)}" if topic != "" else "it does not name a topic",
            hint=did_you_mean(kind, KINDS) or f"write TOPIC=KIND:PLACE, as in {_EXAMPLE}",
        )
    if kind in _FILES and not place:
        raise ConfigError(
            f"--source {text!r} does not say where the {kind} files are",
            hint=f"add the folder: --source {text}:FOLDER",
        )
    if kind in _ARCHIVES and not place:
        raise ConfigError(
            f"--source {text!r} does not say where the table is",
            hint="add it: --source delta:FOLDER, --source iceberg:CATALOG.NAMESPACE.TABLE",
        )
    name, mark, query = place.partition("?")
    is_table = kind in _TABLES and not (kind in _ARCHIVES and not mark)
    if is_table or (kind in _FILES and mark and "timestamp=" in query):
        return SourceText(topic, kind, name, _table_options(text, topic, name, query))
    return SourceText(topic, kind, place)


def _table_options(text: str, topic: str | None, name: str, query: str) -> dict[str, str]:
    """The options behind the ``?`` of a table. Raises ``ConfigError`` for a table that is not completely described."""
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    except ValueError:
        raise ConfigError(
            f"--source {shown(text)!r} does not say what its columns are",
            why="behind the ? stand pairs of a name and a value",
            hint=f"write them as in {_TABLE_EXAMPLE}",
        ) from None
    options = dict(pairs)
    for option in options:
        meant = nearest(option.lower(), _COLUMNS)
        if option not in _COLUMNS and meant and abs(len(option) - len(meant[0])) <= 1:
            raise ConfigError(
                f"--source {shown(text)!r} has an option {option}",
                why=f"a table has {', '.join(_COLUMNS)}, and options of Spark's reader",
                hint=did_you_mean_this(meant[0]),
            )
    counts = options.get("partitions", "1")
    missing = {
        "for which topic the table is": topic,
        "where the table is": name,
        "which column is the timestamp": options.get("timestamp"),
        "how many partitions the topic has": counts.isdecimal() and int(counts),
        "each name once": len(pairs) == len(options),
    }
    for what, given in missing.items():
        if not given:
            raise ConfigError(
                f"--source {shown(text)!r} does not say {what}",
                hint=f"write it as in {_TABLE_EXAMPLE}",
            )
    return options


def parse_sources(texts: Sequence[str]) -> dict[str | None, SourceText]:
    """Several ``--source`` by topic. Raises ``ConfigError`` for a topic that has two."""
    found: dict[str | None, SourceText] = {}
    for text in texts:
        parsed = parse_source(text)
        if parsed.topic in found:
            what = "all topics" if parsed.topic is None else f"topic {parsed.topic}"
            raise ConfigError(
                f"{what} cannot have two sources",
                why=f"they are {found[parsed.topic]} and {parsed}",
                hint="name each topic once, and at most one source for all other topics",
            )
        found[parsed.topic] = parsed
    return found


def check_topics(named: Collection[str | None], inputs: Collection[str]) -> None:
    """Raises ``ConfigError`` for a source of a topic that the application does not read."""
    for topic in named:
        if topic is not None and topic not in inputs:
            raise ConfigError(
                f"The application does not read topic {topic}",
                **not_among(topic, inputs, "it reads", "give sources for the topics that it reads"),
            )


@dataclass(frozen=True, slots=True)
class Places:
    """The places of the logs, and how files without offsets are read. ``log_after_tables``: a log goes on behind each
    table. ``reads_committed``: the live application passes over records of transactions that were aborted."""

    embedded_log: Path
    bootstrap_servers: str | None
    client_settings: Mapping[str, Any] = field(repr=False)
    approximate: bool
    log_after_tables: bool = False
    reads_committed: bool = False


def default_source(places: Places) -> SourceText:
    """The source of a topic without ``--source``: the log that the application runs on."""
    return SourceText(None, "kafka" if places.bootstrap_servers else "embedded", "")


def open_sources(
    texts: Mapping[str | None, SourceText], inputs: Collection[str], places: Places
) -> dict[str, Source | DataFrameSource]:
    """All topics with their sources, ``*`` for those that are not named; topics without a source are read from the log
    that the application runs on.

    ``inputs`` are the topics that the application reads by name. Raises ``ConfigError``.
    """
    check_topics(texts, inputs)
    by_topic = {topic: open_source(text, places) for topic, text in texts.items() if topic is not None}
    others, left = texts.get(None), sorted(set(inputs) - set(by_topic))
    if places.log_after_tables:
        left = sorted({*left, *tables_among(by_topic)})
    if others is None and left:
        others = default_source(places)
        if others.kind == "embedded" and not places.embedded_log.exists():
            raise BrokerUnavailableError(
                f"There is no source for topic {', '.join(left)}",
                where=f"looked for an embedded log at {places.embedded_log}, from {Path.cwd()}",
                hint=f"name an archive: --source {left[0]}=parquet:FOLDER, or a log: --embedded-log FILE,"
                " --bootstrap-servers HOST:PORT",
            )
    return by_topic if others is None else {**by_topic, "*": open_source(others, places)}


def open_source(text: SourceText, places: Places) -> Source | DataFrameSource:
    """The source that the text of a ``--source`` describes. Raises ``ConfigError``; ``BrokerUnavailableError`` for a
    log that is not there."""
    from pystreams.backfill import sources
    from pystreams.broker.missing_log import check_embedded_log

    match text.kind:
        case "kafka":
            servers = text.place or places.bootstrap_servers
            if not servers:
                raise ConfigError(
                    "a source on Kafka needs the addresses of its brokers",
                    hint="write kafka:HOST:PORT, or add --bootstrap-servers HOST:PORT",
                )
            return sources.KafkaSource(
                servers, places.client_settings, "read_committed" if places.reads_committed else None
            )
        case "embedded":
            path = Path(text.place) if text.place else places.embedded_log
            check_embedded_log(path, "name its file: embedded:FILE, or --embedded-log FILE")
            return sources.EmbeddedSource(str(path))
        case "parquet" | "json" | "csv" if not text.options:
            kinds: Mapping[str, Callable[..., Source]] = {
                "parquet": sources.ParquetSource,
                "json": sources.JsonSource,
                "csv": sources.CsvSource,
            }
            return kinds[text.kind](text.place, topic=text.topic, approximate=places.approximate)
        case "delta" if not text.options:
            return sources.DeltaArchive(text.place, approximate=places.approximate)
        case "iceberg" if not text.options:
            return sources.IcebergArchive(text.place, approximate=places.approximate)
        case _:
            return _open_table(text)


def tables_among(sources: Mapping[str, Source | DataFrameSource]) -> dict[str, DataFrameSource]:
    """The topics whose history comes from tables."""
    from pystreams.backfill.sources import DataFrameSource

    return {topic: source for topic, source in sources.items() if isinstance(source, DataFrameSource)}


def _open_table(text: SourceText) -> DataFrameSource:
    from pystreams.backfill.sources import DataFrameSource, SparkTable

    options = dict(text.options)
    columns = {name: options.pop(name, None) for name in _COLUMNS}
    partitions = columns["partitions"]
    url = f"jdbc:{text.place}" if text.kind == "jdbc" else text.place
    return DataFrameSource(
        SparkTable(text.kind, url, options),
        timestamp=str(columns["timestamp"]),
        key=_names(columns["key"]),
        value=_names(columns["value"]),
        partition=columns["partition"],
        offset=columns["offset"],
        partitions=None if partitions is None else int(partitions),
    )


def _names(text: str | None) -> str | list[str] | None:
    """``a,b`` are two columns."""
    return text.split(",") if text and "," in text else text or None


def parse_until(text: str) -> Until:
    """``now``, a time, or offsets like ``orders-0=120,orders-1=98``. Raises ``ConfigError`` for anything else, and for
    text that is ambiguous."""
    if text == "now":
        return None
    if "=" not in text:
        if not text[:1].isdigit():
            raise ConfigError(
                f"--until {text!r} does not say where reading ends",
                hint=did_you_mean(text, ["now"]) or "write now, a time like 2013-11-01, or orders-0=120,…",
            )
        time_ms = read_time(text)
        if text.isdigit() and time_ms < MILLISECONDS_MIN:
            raise ambiguous(text, time_ms, "--until", ", or offsets as TOPIC-PARTITION=OFFSET")
        return time_ms
    offsets: dict[TopicPartition, int] = {}
    for part in text.split(","):
        match = _OFFSET.fullmatch(part)
        if match is None:
            raise ConfigError(
                f"--until {text!r} does not name offsets",
                why=f"{part.strip()!r} is not a partition with its offset",
                hint="write TOPIC-PARTITION=OFFSET, as in orders-0=120,orders-1=98 (other partitions are "
                "read up to their end)",
            )
        partition = TopicPartition(match["topic"], int(match["partition"]))
        if partition in offsets:
            raise ConfigError(
                f"--until names {partition} twice",
                why=f"at {offsets[partition]} and at {match['offset']}",
                hint="name each partition once",
            )
        offsets[partition] = int(match["offset"])
    return offsets


def parse_boundary(text: str) -> int:
    """A time in ms. Raises ``ConfigError`` for anything else, and for text that is ambiguous."""
    return moment_ms(text, "--boundary")
