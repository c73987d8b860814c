"""``pystreams produce``: lines of text, JSON or CSV become records."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Annotated

import typer

from pystreams.broker.port import Broker, TopicDescription
from pystreams.cli.connection import open_admin, open_broker_at
from pystreams.cli.options import BootstrapServersOption, EmbeddedLogOption
from pystreams.cli.records.format import Format
from pystreams.cli.records.input_lines import InputLines, input_lines
from pystreams.cli.records.input_records import (
    CsvRows,
    Fields,
    InputReader,
    JsonRecords,
    ObjectLines,
    TextLines,
)
from pystreams.cli.records.known_formats import FORMAT_NAMES, format_named
from pystreams.cli.records.reading_progress import reading_progress
from pystreams.cli.terminal.console import note
from pystreams.clock import SystemClock
from pystreams.errors import ConfigError, SerializationError, StreamsError
from pystreams.log.batches import BatchWriter
from pystreams.log.output import DoubtfulTimes
from pystreams.log.topics import chosen_partitions, existing_topic
from pystreams.plural import counted
from pystreams.times import LAST_MS, read_time

FIELDS_PANEL = "JSON and CSV"


def produce(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic to write to.", show_default=False)],
    file: Annotated[
        Path | None,
        typer.Option("--file", "-f", help="Read a file instead of standard input.", show_default=False),
    ] = None,
    key_separator: Annotated[
        str | None,
        typer.Option(
            "--key-separator",
            "-k",
            metavar="TEXT",
            help="The text before the first TEXT in a line is the record's key. Without this option records "
            "have no key.",
            show_default=False,
        ),
    ] = None,
    key_type: Annotated[str, typer.Option("--key-type", metavar="TYPE", help=f"{FORMAT_NAMES}.")] = "str",
    value_type: Annotated[
        str | None,
        typer.Option(
            "--value-type",
            metavar="TYPE",
            help="The same for values. [bold]json[/] checks each line. Default: str; json for --csv",
            show_default=False,
        ),
    ] = None,
    timestamp: Annotated[
        str | None,
        typer.Option(
            "--timestamp",
            metavar="TIME",
            help="The event time of records without a timestamp: milliseconds or ISO 8601. Default: now.",
            show_default=False,
        ),
    ] = None,
    partition: Annotated[
        int | None,
        typer.Option(
            "--partition", min=0, help="Default: the partition that the key's hash gives.", show_default=False
        ),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Each line is a record as [bold]consume --json[/] writes it: key, value, timestamp, headers,"
            " partition.",
            rich_help_panel=FIELDS_PANEL,
        ),
    ] = False,
    by_key: Annotated[
        bool,
        typer.Option(
            "--by-key",
            help="With --json: partition by the keys' hashes, and ignore the partitions in the lines.",
            rich_help_panel=FIELDS_PANEL,
        ),
    ] = False,
    as_csv: Annotated[
        bool,
        typer.Option(
            "--csv",
            help="The first line has the names of the columns; each other line becomes a JSON object with "
            "these names.",
            rich_help_panel=FIELDS_PANEL,
        ),
    ] = False,
    text_column: Annotated[
        list[str] | None,
        typer.Option(
            "--text-column",
            metavar="NAME",
            help="With --csv: in this column numbers stay text. May be repeated.",
            show_default=False,
            rich_help_panel=FIELDS_PANEL,
        ),
    ] = None,
    key_field: Annotated[
        str | None,
        typer.Option(
            "--key-field",
            metavar="NAME",
            help="The field of each JSON object, or the column, that is also the key.",
            show_default=False,
            rich_help_panel=FIELDS_PANEL,
        ),
    ] = None,
    timestamp_field: Annotated[
        str | None,
        typer.Option(
            "--timestamp-field",
            metavar="NAME",
            help="The field or column that is the event time: milliseconds or ISO 8601.",
            show_default=False,
            rich_help_panel=FIELDS_PANEL,
        ),
    ] = None,
    embedded_log: EmbeddedLogOption = None,
    bootstrap_servers: BootstrapServersOption = None,
) -> None:
    """Write each line of standard input as a record.

    [bold]echo 'to be or not to be' | pystreams produce lines[/]

    [bold]echo 'alice=3' | pystreams produce scores --key-separator = --value-type int[/]

    [bold]pystreams consume orders --json | pystreams produce copy --json[/]

    [bold]pystreams produce flights --csv -f flights.csv --key-field carrier --timestamp-field time[/]
    """
    fields = {"--key-field": key_field, "--timestamp-field": timestamp_field}
    _check_together(
        {"--json": as_json, "--csv": as_csv, "--key-separator": key_separator, **fields},
        ("--json", "--csv"),
        ("--key-separator", "--json"),
        ("--key-separator", "--csv"),
        ("--key-separator", "--key-field"),
        *(("--json", option) for option in fields),
    )
    _check_needs({"--by-key": (by_key, "--json", as_json), "--text-column": (text_column, "--csv", as_csv)})
    keys = format_named(key_type, topic, "key", auto=False)
    values = format_named(value_type or ("json" if as_csv else "str"), topic, "value", auto=False)
    of_objects = Fields(key_field, timestamp_field, keys)
    reader: InputReader
    if as_json:
        reader = JsonRecords(keys, values, _formats_of(topic))
    elif as_csv:
        reader = CsvRows(of_objects, values, frozenset(text_column or ()))
    elif key_field is not None or timestamp_field is not None:
        reader = ObjectLines(of_objects, values)
    else:
        reader = TextLines(keys, values, key_separator)
    at = None if timestamp is None else read_time(timestamp)
    with open_broker_at(embedded_log, bootstrap_servers) as broker:
        with open_admin(broker) as admin:
            found = existing_topic(admin, topic, broker.description)
        if partition is not None:
            chosen_partitions(found, [partition])
        with input_lines(file, csv=as_csv) as lines:
            written = _write(broker, found, reader, lines, at, partition, by_key=by_key)
    note(f"Wrote {counted(written, 'record')} to {topic}.")


def _write(
    broker: Broker,
    topic: TopicDescription,
    reader: InputReader,
    lines: InputLines,
    at: int | None,
    partition: int | None,
    *,
    by_key: bool,
) -> int:
    clock, batches = SystemClock(), BatchWriter(broker, "pystreams-produce")
    doubtful_times, reached, sent = DoubtfulTimes(topic, clock), 0, 0
    try:
        with batches, reading_progress(lines, clock) as progress:
            for record in reader(lines):
                timestamp = at if record.timestamp is None else record.timestamp
                timestamp = clock.now_ms() if timestamp is None else timestamp
                if not 0 <= timestamp <= LAST_MS:
                    raise _no_time(timestamp, record.line)
                warning = doubtful_times.warning(timestamp)
                if warning:
                    note(warning)
                where = None if by_key else record.partition
                if partition is not None:
                    where = partition
                elif where is not None and not 0 <= where < topic.partitions:
                    raise _no_partition(topic, where, record.line)
                reached = record.line
                batches.send(topic.name, where, record.key, record.value, timestamp, record.headers)
                sent = reached
                progress.update(batches.sent)
    except StreamsError as error:
        line = f", at line {reached}" if reached > sent else f", after line {sent}"
        error.extend(
            where=lines.name if error.where.startswith("line ") or not reached else lines.name + line,
            hint=f"{counted(batches.committed, 'record')} written to {topic.name} before the error",
        )
        raise
    except KeyboardInterrupt:
        note(
            f"Interrupted: wrote {counted(batches.committed, 'record')} to {topic.name}, up to line {sent:,}."
        )
        raise
    return batches.committed


def _no_partition(topic: TopicDescription, partition: int, line: int) -> ConfigError:
    return ConfigError(
        f"{topic.name} has no partition {partition}",
        where=f"line {line}",
        why=f"it has {topic.partitions} partitions, counted from 0, and the line names this one",
        hint="with --by-key the key's hash chooses the partition",
    )


def _no_time(timestamp: int, line: int) -> SerializationError:
    return SerializationError(
        f"A record cannot have the timestamp {timestamp}",
        where=f"line {line}",
        why=f"event time is in milliseconds since 1970, up to {LAST_MS}",
    )


def _formats_of(topic: str) -> Callable[[str, str], Format]:
    @cache
    def format_of(name: str, part: str) -> Format:
        return format_named(name, topic, part, auto=False)

    return format_of


def _check_together(given: dict[str, object], *contradictions: tuple[str, str]) -> None:
    for one, other in contradictions:
        if given[one] and given[other]:
            raise ConfigError(f"{one} and {other} contradict each other", hint="leave one of them out")


def _check_needs(needs: dict[str, tuple[object, str, bool]]) -> None:
    for option, (given, needed, there) in needs.items():
        if given and not there:
            raise ConfigError(f"{option} is for {needed}", hint=f"give {needed}, or leave {option} out")
