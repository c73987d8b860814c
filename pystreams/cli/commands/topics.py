"""``pystreams topics``: list, describe, create, alter, delete."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from pystreams.broker.port import TopicDescription
from pystreams.cli.application.settings import parse_pairs
from pystreams.cli.connection import open_admin, open_broker_at
from pystreams.cli.options import BootstrapServersOption, EmbeddedLogOption, YesOption
from pystreams.cli.terminal.console import note, show_table
from pystreams.log.topics import create_missing, existing_topic, is_internal, partitions_of, topic_info
from pystreams.plural import counted, plural

topics_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="List, describe, create, alter and delete topics.",
)

RETENTION_EXAMPLE = "retention.ms=-1"

TopicArgument: TypeAlias = Annotated[str, typer.Argument(metavar="TOPIC", show_default=False)]
TopicsArgument: TypeAlias = Annotated[list[str], typer.Argument(metavar="TOPIC...", show_default=False)]
ConfigOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--config",
        "-c",
        metavar="NAME=VALUE",
        help="A topic setting by Kafka's name: [bold]-c retention.ms=-1[/]. May be repeated.",
        show_default=False,
    ),
]


@topics_app.command("list")
def list_topics(
    internal: Annotated[
        bool, typer.Option("--internal", help="Also list changelogs and repartition topics.")
    ] = False,
    embedded_log: EmbeddedLogOption = None,
    bootstrap_servers: BootstrapServersOption = None,
) -> None:
    """List topics with their partitions and number of records."""
    with open_broker_at(embedded_log, bootstrap_servers) as broker, open_admin(broker) as admin:
        found = sorted(admin.describe_topics().values(), key=lambda topic: topic.name)
        shown = [topic for topic in found if internal or not is_internal(topic.name)]
        every = [partition for topic in shown for partition in partitions_of(topic)]
        starts, ends = admin.beginning_offsets(every), admin.end_offsets(every)
    rows = [
        [
            topic.name,
            str(topic.partitions),
            f"{sum(ends[p] - starts[p] for p in partitions_of(topic)):,}",
            retention_of(topic),
        ]
        for topic in shown
    ]
    if rows:
        show_table(["topic", "partitions", "records", "kept"], rows)
    else:
        note(f"No topics yet: {broker.description}. Create one: pystreams topics create NAME")
    if len(shown) < len(found):
        note(f"{len(found) - len(shown)} internal topics are not shown: --internal shows them.")


@topics_app.command()
def describe(
    topic: TopicArgument,
    embedded_log: EmbeddedLogOption = None,
    bootstrap_servers: BootstrapServersOption = None,
) -> None:
    """Show a topic's partitions with their offsets, and its settings."""
    with open_broker_at(embedded_log, bootstrap_servers) as broker, open_admin(broker) as admin:
        found = existing_topic(admin, topic, broker.description)
        every = partitions_of(found)
        starts, ends = admin.beginning_offsets(every), admin.end_offsets(every)
    show_table(
        ["partition", "first offset", "end offset", "records"],
        [[str(p.partition), str(starts[p]), str(ends[p]), f"{ends[p] - starts[p]:,}"] for p in every],
    )
    for name, value in sorted(found.config.items()):
        print(f"{name}={value}")


@topics_app.command()
def create(
    topics: TopicsArgument,
    partitions: Annotated[
        int | None,
        typer.Option(
            "--partitions", "-p", min=1, help="Number of partitions. Default: 1", show_default=False
        ),
    ] = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="Do not change topics that already exist.")
    ] = False,
    config: ConfigOption = None,
    embedded_log: EmbeddedLogOption = None,
    bootstrap_servers: BootstrapServersOption = None,
) -> None:
    """Create topics: all, or none if one exists already (or, with [bold]--if-not-exists[/], has another number of
    partitions than is asked for).

    Topics that are joined need the same number of partitions. Records that
    are older than [bold]retention.ms[/] are deleted soon after they are written:
    [bold]-c retention.ms=-1[/] keeps them.

    [bold]pystreams topics create lines word-counts --partitions 4[/]
    """
    settings = parse_pairs(config or (), RETENTION_EXAMPLE)
    with open_broker_at(embedded_log, bootstrap_servers, create=True) as broker, open_admin(broker) as admin:
        new = create_missing(
            admin, topics, partitions, settings, broker.description, if_not_exists=if_not_exists
        )
    count = partitions or 1
    if new:
        note(f"Created {', '.join(new)} with {count} {plural(count, 'partition')}.")
    if len(new) < len(set(topics)):
        note(f"These exist already, and were not changed: {', '.join(sorted(set(topics) - set(new)))}.")


@topics_app.command()
def alter(
    topics: TopicsArgument,
    config: Annotated[
        list[str],
        typer.Option("--config", "-c", metavar="NAME=VALUE", help="A topic setting.", show_default=False),
    ],
    embedded_log: EmbeddedLogOption = None,
    bootstrap_servers: BootstrapServersOption = None,
) -> None:
    """Change settings of topics: of none if one does not exist.

    [bold]pystreams topics alter flights airports -c retention.ms=-1[/]
    """
    names = list(dict.fromkeys(topics))
    changes = parse_pairs(config, RETENTION_EXAMPLE)
    with open_broker_at(embedded_log, bootstrap_servers) as broker, open_admin(broker) as admin:
        for name in names:
            existing_topic(admin, name, broker.description)
        for name in names:
            admin.alter_topic_config(name, changes)
    note(f"{', '.join(names)}: " + ", ".join(f"{name}={value}" for name, value in changes.items()))


@topics_app.command()
def delete(
    topics: TopicsArgument,
    yes: YesOption = False,
    embedded_log: EmbeddedLogOption = None,
    bootstrap_servers: BootstrapServersOption = None,
) -> None:
    """Delete topics with all their records: all, or none if one does not exist.

    [bold]pystreams topics delete lines word-counts[/]
    """
    names = list(dict.fromkeys(topics))
    with open_broker_at(embedded_log, bootstrap_servers) as broker, open_admin(broker) as admin:
        every = [topic_info(admin, existing_topic(admin, name, broker.description)) for name in names]
        if not yes:
            records = sum(topic.records for topic in every)
            question = f"Delete {', '.join(names)} with {counted(records, 'record')}?"
            typer.confirm(question, abort=True, err=True)
        admin.delete_topics(names)
    note(f"Deleted {', '.join(names)}.")


def retention_of(topic: TopicDescription) -> str:
    """The retention, as tables show it: ``for ever``, ``7 days``, ``last per key``."""
    compacted = "compact" in topic.config.get("cleanup.policy", "delete")
    kept = []
    if compacted:
        kept.append("last per key")
    if "delete" in topic.config.get("cleanup.policy", "delete"):
        limit = int(topic.config.get("retention.ms", "-1"))
        kept.append("for ever" if limit < 0 else _spell_duration(limit))
    return ", ".join(kept)


def _spell_duration(milliseconds: int) -> str:
    for unit, size in (("days", 86_400_000), ("hours", 3_600_000), ("minutes", 60_000), ("seconds", 1000)):
        if milliseconds >= size and milliseconds % size == 0:
            return f"{milliseconds // size} {unit}"
    return f"{milliseconds} ms"
