"""``pystreams consume``: records become lines of text."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from pystreams.broker.port import Consumer
from pystreams.cli.connection import open_admin, open_broker_at
from pystreams.cli.options import BootstrapServersOption, EmbeddedLogOption
from pystreams.cli.records.format import Format, show_bytes
from pystreams.cli.records.json_records import json_line
from pystreams.cli.records.known_formats import FORMAT_NAMES, format_named
from pystreams.cli.terminal.console import note
from pystreams.ids import TopicPartition
from pystreams.log.positions import positions_at, read_batches
from pystreams.log.topics import chosen_partitions, existing_topic
from pystreams.record import RecordBatch
from pystreams.times import show_time


def consume(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic to read.", show_default=False)],
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Keep reading new records, until Ctrl-C.")
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option("--max", "-n", min=1, help="Stop after this number of records.", show_default=False),
    ] = None,
    start: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="earliest|latest|TIME|-N",
            help="Where to begin: at the first record, after the last, at an event time (ISO 8601 or "
            "milliseconds), or N records before the end of each partition.",
        ),
    ] = "earliest",
    partition: Annotated[
        int | None,
        typer.Option("--partition", "-p", min=0, help="Read only this partition.", show_default=False),
    ] = None,
    key_type: Annotated[
        str,
        typer.Option("--key-type", metavar="TYPE", help=f"auto, {FORMAT_NAMES}."),
    ] = "auto",
    value_type: Annotated[
        str,
        typer.Option(
            "--value-type",
            metavar="TYPE",
            help="The same for values. [bold]auto[/] shows text as text, 8 other bytes as a 64-bit integer, "
            "everything else in hex.",
        ),
    ] = "auto",
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="One JSON object per line: partition, offset, timestamp, key, value, headers. [bold]produce "
            "--json[/] writes the same records from it.",
        ),
    ] = False,
    embedded_log: EmbeddedLogOption = None,
    bootstrap_servers: BootstrapServersOption = None,
) -> None:
    """Print a topic's records: event time, key, value.

    Stops at the end of the topic, except with [bold]--follow[/].

    [bold]pystreams consume word-counts[/]

    [bold]pystreams consume word-counts --follow --from latest[/]

    [bold]pystreams consume flights --json --max 3 | jq .value[/]
    """
    keys = format_named(key_type, topic, "key", auto=True)
    values = format_named(value_type, topic, "value", auto=True)
    with open_broker_at(embedded_log, bootstrap_servers) as broker:
        with open_admin(broker) as admin:
            chosen = chosen_partitions(
                existing_topic(admin, topic, broker.description), None if partition is None else [partition]
            )
            starts = positions_at(admin, chosen, start)
            ends = None if follow else admin.stable_end_offsets(chosen)
        # A restore consumer, because it reads committed records only.
        consumer = broker.consumer("pystreams-consume", "restore")
        try:
            printed = _print_all(consumer, starts, ends, limit, RecordPrinter(keys, values, as_json))
        finally:
            consumer.close()
    if not printed:
        note(f"No records in {topic} from {start} on." if start != "earliest" else f"{topic} is empty.")


def _print_all(
    consumer: Consumer,
    starts: dict[TopicPartition, int],
    ends: dict[TopicPartition, int] | None,
    limit: int | None,
    printer: RecordPrinter,
) -> int:
    printed = 0
    for batch in read_batches(consumer, starts, ends):
        for index in range(len(batch)):
            if limit is not None and printed >= limit:
                return printed
            printer.show(batch, index)
            printed += 1
        sys.stdout.flush()
        if limit is not None and printed >= limit:
            return printed
    return printed


class RecordPrinter:
    """Writes one line for each record."""

    def __init__(self, key_format: Format, value_format: Format, as_json: bool) -> None:
        self._key_format = key_format
        self._value_format = value_format
        self._as_json = as_json
        self._pretty = sys.stdout.isatty()

    def show(self, batch: RecordBatch, index: int) -> None:
        """Print record ``index`` of ``batch``."""
        if self._as_json:
            print(json_line(batch, index, self._key_format, self._value_format))
            return
        time = show_time(batch.timestamps[index])
        shown_key, shown_value = (
            show_bytes(self._key_format, batch.keys[index]),
            show_bytes(self._value_format, batch.values[index]),
        )
        if self._pretty:
            print(f"\x1b[2m{time}\x1b[0m  \x1b[36m{shown_key}\x1b[0m  {shown_value}")
        else:
            print(f"{time}\t{shown_key}\t{shown_value}")
