"""``pystreams produce``: lines of text become records."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, TextIO

import typer

from pystreams.broker.port import Broker, Producer, TopicDescription
from pystreams.cli.connection import open_admin, open_broker
from pystreams.cli.console import messages, note
from pystreams.cli.formats import FORMAT_NAMES, Format, format_named, read_text
from pystreams.cli.options import BootstrapServersOption, EmbeddedLogOption
from pystreams.clock import SystemClock
from pystreams.errors import ConfigError, SerializationError, StreamsError
from pystreams.log.topics import existing_topic
from pystreams.record import NO_HEADERS
from pystreams.times import read_time, show_time

#: Lines that are made durable together: a slow pipe is seen by others soon, a file is written fast.
LINES_PER_COMMIT = 10_000


def produce(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Where to write.", show_default=False)],
    file: Annotated[
        Path | None,
        typer.Option(
            "--file", "-f", help="Read lines from a file instead of standard input.", show_default=False
        ),
    ] = None,
    key_separator: Annotated[
        str | None,
        typer.Option(
            "--key-separator",
            "-k",
            metavar="TEXT",
            help="What stands before the first TEXT in a line is the record's key. Without it records have no key.",
            show_default=False,
        ),
    ] = None,
    key_type: Annotated[str, typer.Option("--key-type", metavar="TYPE", help=f"{FORMAT_NAMES}.")] = "str",
    value_type: Annotated[
        str, typer.Option("--value-type", metavar="TYPE", help="The same. [bold]json[/] checks each line.")
    ] = "str",
    timestamp: Annotated[
        str | None,
        typer.Option(
            "--timestamp",
            metavar="TIME",
            help="The records' event time: milliseconds or ISO 8601. Default: now.",
            show_default=False,
        ),
    ] = None,
    partition: Annotated[
        int | None,
        typer.Option("--partition", min=0, help="Default: by the key's hash.", show_default=False),
    ] = None,
    embedded_log: EmbeddedLogOption = None,
    bootstrap_servers: BootstrapServersOption = None,
) -> None:
    """Write each line of standard input as a record.

    [bold]echo 'to be or not to be' | pystreams produce lines[/]

    [bold]echo 'alice=3' | pystreams produce scores --key-separator = --value-type int[/]
    """
    keys = format_named(key_type, topic, "key", auto=False)
    values = format_named(value_type, topic, "value", auto=False)
    at = None if timestamp is None else read_time(timestamp)
    with open_broker(embedded_log, bootstrap_servers) as broker:
        with open_admin(broker) as admin:
            found = existing_topic(admin, topic, broker.description)
        if partition is not None and partition >= found.partitions:
            raise ConfigError(
                f"{topic} has no partition {partition}", why=f"it has {found.partitions}, counted from 0"
            )
        if at is not None:
            _warn_of_retention(found, at)
        lines = LineWriter(broker, topic, partition, keys, values, key_separator, at)
        try:
            written = _write_all(lines, file)
        finally:
            lines.close()
    note(f"Wrote {written:,} record{'' if written == 1 else 's'} to {topic}.")


def _warn_of_retention(topic: TopicDescription, timestamp: int) -> None:
    """Retention counts from the records' own time: what is old already is deleted as soon as it is written."""
    limit = int(topic.config.get("retention.ms", "-1"))
    deletes = "delete" in topic.config.get("cleanup.policy", "delete")
    if deletes and 0 <= limit < SystemClock().now_ms() - timestamp:
        note(
            f"{topic.name} deletes records of {show_time(timestamp)} soon; to keep them:"
            f" pystreams topics alter {topic.name} -c retention.ms=-1"
        )


class LineWriter:
    """Writes lines as records and commits them in groups."""

    def __init__(
        self,
        broker: Broker,
        topic: str,
        partition: int | None,
        key_format: Format,
        value_format: Format,
        separator: str | None,
        timestamp: int | None,
    ) -> None:
        self._producer: Producer = broker.producer("pystreams-produce", "pystreams-produce")
        self._topic = topic
        self._partition = partition
        self._key_format = key_format
        self._value_format = value_format
        self._separator = separator
        self._timestamp = timestamp
        self._clock = SystemClock()
        self.written = 0

    def write(self, line: str) -> None:
        """Send one record. Raises ``SerializationError`` for a line that is not of the format."""
        where = f"line {self.written + 1}"
        key = None
        if self._separator is not None:
            before, found, after = line.partition(self._separator)
            if not found:
                raise SerializationError(
                    f"There is no {self._separator!r} in {line!r}",
                    where=where,
                    why="--key-separator says that it parts key and value",
                    hint="nothing after this line was written",
                )
            key, line = read_text(self._key_format, before, where), after
        value = read_text(self._value_format, line, where)
        timestamp = self._clock.now_ms() if self._timestamp is None else self._timestamp
        try:
            self._producer.send(self._topic, self._partition, key, value, timestamp, NO_HEADERS)
        except StreamsError as error:
            error.extend(where=where, hint="nothing from this line on was written")
            raise
        self.written += 1

    def commit(self) -> None:
        """Make durable what was written."""
        self._producer.commit({}, None)

    def close(self) -> None:
        """Release the producer; what was not committed is dropped."""
        self._producer.close()


def _write_all(lines: LineWriter, file: Path | None) -> int:
    if file is None:
        if sys.stdin.isatty():
            messages().print("A line is a record. End with Ctrl-D.", style="dim")
        return _write(lines, sys.stdin, line_by_line=sys.stdin.isatty(), name="standard input")
    try:
        with file.open(encoding="utf-8") as text:
            return _write(lines, text, line_by_line=False, name=str(file))
    except OSError as error:
        raise ConfigError(f"{file} cannot be read", why=str(error)) from None


def _write(lines: LineWriter, text: TextIO, *, line_by_line: bool, name: str) -> int:
    try:
        for line in text:
            lines.write(line.rstrip("\r\n"))
            if line_by_line or lines.written % LINES_PER_COMMIT == 0:
                lines.commit()
    except UnicodeDecodeError as error:
        raise SerializationError(
            f"{name} is not text",
            where=f"after line {lines.written}",
            why=f"it is not UTF-8: {error}",
            hint="nothing after this line was written; bytes can be given as hex: --value-type hex",
        ) from None
    finally:
        # Lines before a bad one are good: they are kept, and the message says where writing ended.
        lines.commit()
    return lines.written
