"""``pystreams dlq``: list, show, replay."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from pystreams.cli.connection import open_admin, open_broker_at
from pystreams.cli.options import BootstrapServersOption, EmbeddedLogOption, YesOption
from pystreams.cli.records.known_formats import FORMAT_NAMES, format_named
from pystreams.cli.terminal.console import note, show_table
from pystreams.cli.terminal.exits import Exit
from pystreams.errors import StreamsError
from pystreams.plural import plural
from pystreams.times import read_time

if TYPE_CHECKING:
    from pystreams.broker.port import Admin
    from pystreams.cli.commands.dlq.marks import Marks
    from pystreams.cli.commands.dlq.plan import ReplayPlan
    from pystreams.cli.commands.dlq.selection import Filter, Letters
    from pystreams.cli.commands.dlq.writing import Writing
    from pystreams.topology.built import BuiltTopology

CHOICE_PANEL = "Which dead letters"

dlq_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Look at the records of a dead-letter topic, and replay them.",
)

TopicArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="TOPIC", help="The dead-letter topic.", show_default=False)
]
StepOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--step",
        metavar="NAME",
        help="Only those of this step.",
        show_default=False,
        rich_help_panel=CHOICE_PANEL,
    ),
]
ErrorOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--error",
        metavar="CLASS",
        help="Only those with this error: [bold]ValueError[/], or with its module.",
        show_default=False,
        rich_help_panel=CHOICE_PANEL,
    ),
]
SourceOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--source",
        metavar="TOPIC",
        help="Only those whose records came from this topic.",
        show_default=False,
        rich_help_panel=CHOICE_PANEL,
    ),
]
SinceOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--since",
        metavar="TIME",
        help="Only records with this event time or a later one (ISO 8601 or milliseconds).",
        show_default=False,
        rich_help_panel=CHOICE_PANEL,
    ),
]
UntilOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--until",
        metavar="TIME",
        help="Only records with an earlier event time.",
        show_default=False,
        rich_help_panel=CHOICE_PANEL,
    ),
]


@dlq_app.command("list")
def list_letters(
    topic: TopicArgument,
    step: StepOption = None,
    error: ErrorOption = None,
    source: SourceOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object for each line of the table.")
    ] = False,
    embedded_log: EmbeddedLogOption = None,
    bootstrap_servers: BootstrapServersOption = None,
) -> None:
    """Count dead letters by step, error and source topic.

    The table also says how many have been replayed, how many failed again after a replay, and the first and last event
    time.

    [bold]pystreams dlq list bad-orders[/]

    [bold]pystreams dlq list bad-orders --error ValueError --since 2026-11-22[/]
    """
    from pystreams.cli.commands.dlq.listing import show_list

    chosen = _filter(step, error, source, since, until)
    with _opened(topic, embedded_log, bootstrap_servers) as (_, letters, marks):
        show_list(letters, chosen, marks, as_json=as_json)


@dlq_app.command()
def show(
    topic: TopicArgument,
    step: StepOption = None,
    error: ErrorOption = None,
    source: SourceOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", "-n", min=1, help="Stop after this number of letters.", show_default=False),
    ] = None,
    trace: Annotated[bool, typer.Option("--trace", help="Also show the stack trace.")] = False,
    application: Annotated[
        str | None,
        typer.Option(
            "--app",
            metavar="MODULE[:ATTR]",
            help="Show keys and values as this application reads them, or why it cannot.",
            show_default=False,
        ),
    ] = None,
    key_type: Annotated[
        str, typer.Option("--key-type", metavar="TYPE", help=f"As in consume: auto, {FORMAT_NAMES}.")
    ] = "auto",
    value_type: Annotated[
        str, typer.Option("--value-type", metavar="TYPE", help="The same for values.")
    ] = "auto",
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object for each letter, with its stack trace.")
    ] = False,
    embedded_log: EmbeddedLogOption = None,
    bootstrap_servers: BootstrapServersOption = None,
) -> None:
    """Show dead letters one by one: where they came from, why they are here, key and value.

    [bold]pystreams dlq show bad-orders --limit 3 --trace[/]

    [bold]pystreams dlq show bad-orders --app shop[/]
    """
    from pystreams.cli.commands.dlq.decoding import LetterTexts
    from pystreams.cli.commands.dlq.showing import show_letters

    chosen = _filter(step, error, source, since, until)
    keys = format_named(key_type, topic, "key", auto=True)
    values = format_named(value_type, topic, "value", auto=True)
    built = None if application is None else _built(application, embedded_log, bootstrap_servers)
    texts = LetterTexts(keys, values, built)
    with _opened(topic, embedded_log, bootstrap_servers) as (_, letters, marks):
        show_letters(letters, chosen, marks, texts, limit, trace=trace, as_json=as_json)


@dlq_app.command()
def replay(
    topic: TopicArgument,
    step: StepOption = None,
    error: ErrorOption = None,
    source: SourceOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="TOPIC",
            help="Write to this topic instead of the topics that the records came from.",
            show_default=False,
        ),
    ] = None,
    by_key: Annotated[
        bool | None,
        typer.Option(
            "--by-key/--same-partitions",
            help="Write to the partitions that the keys' hashes give, or to those that the records came from. The "
            "latter is the default, unless a topic has got more partitions since: then choose.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan, and write nothing.")] = False,
    yes: YesOption = False,
    embedded_log: EmbeddedLogOption = None,
    bootstrap_servers: BootstrapServersOption = None,
) -> None:
    """Write the records of dead letters back to the topics that they came from, each once.

    Key, value, timestamp, headers and partition are those of the input record; the header __pystreams.replays counts
    its replays. Correct the application first. A record is written once, whichever options choose it, and also if a
    replay is killed: run the command again. The dead letters stay in their topic.

    [bold]pystreams dlq replay bad-orders --dry-run[/]

    [bold]pystreams dlq replay bad-orders --step parse --error ValueError[/]
    """
    from pystreams.cli.commands.dlq.marks import create_marks
    from pystreams.cli.commands.dlq.plan import ReplayPlan, Targets, check_target
    from pystreams.cli.commands.dlq.selection import none_chosen
    from pystreams.cli.commands.dlq.writing import Writing

    check_target(topic, to, by_key=by_key)
    chosen = _filter(step, error, source, since, until)
    with _opened(topic, embedded_log, bootstrap_servers) as (admin, letters, marks):
        targets = Targets(admin, letters.broker.description, to, by_key=by_key)
        plan = ReplayPlan(letters, chosen, marks, targets)
        if not plan.chosen:
            note(none_chosen(letters, plan.seen))
            return
        _show_plan(plan)
        if dry_run:
            done = "Nothing was written."
        elif not plan.total:
            done = "Nothing is left to replay."
        else:
            if not yes:
                typer.confirm(f"Replay {plan.total:,} {plural(plan.total, 'record')}?", abort=True, err=True)
            create_marks(admin, letters.topic)
            with closing(Writing(letters, chosen, targets, admin)) as writing:
                done = _write(writing)
    note(done + _left_out(plan))
    if plan.skipped:
        raise typer.Exit(Exit.FAILED)


def _filter(
    step: str | None, error: str | None, source: str | None, since: str | None, until: str | None
) -> Filter:
    from pystreams.cli.commands.dlq.selection import Filter

    since_ms = None if since is None else read_time(since)
    return Filter(step, error, source, since_ms, None if until is None else read_time(until))


@contextmanager
def _opened(
    topic: str, embedded_log: Path | None, bootstrap_servers: str | None
) -> Iterator[tuple[Admin, Letters, Marks]]:
    """The letters of the topic, and the marks of those that have been replayed."""
    from pystreams.cli.commands.dlq.marks import committed_marks
    from pystreams.cli.commands.dlq.selection import Letters

    with open_broker_at(embedded_log, bootstrap_servers) as broker, open_admin(broker) as admin:
        letters = Letters.now(broker, admin, topic)
        with closing(committed_marks(broker, admin, topic, letters.topic_id)) as marks:
            yield admin, letters, marks


def _built(application: str, embedded_log: Path | None, bootstrap_servers: str | None) -> BuiltTopology:
    from pystreams.cli.application.loading import load_application
    from pystreams.cli.application.settings import settings_of
    from pystreams.dsl.builder import build_topology

    app = load_application(application)
    settings = settings_of(
        app,
        None,
        default_id="application",
        embedded_log=embedded_log,
        bootstrap_servers=bootstrap_servers,
    )
    return build_topology(app, settings)


def _show_plan(plan: ReplayPlan) -> None:
    show_table(["records", "what happens"], plan.rows())
    if plan.failed_again:
        note(
            f"{plan.failed_again:,} of them failed again after a replay: has the application been corrected?"
        )
    for warning in filter(None, [*plan.warnings, plan.late_warning()]):
        note(warning)


def _write(writing: Writing) -> str:
    """Write the records, and return the text of the last line."""
    from pystreams.cli.commands.dlq.plan import counted

    go_on = "the same command replays the others"
    try:
        writing.run()
    except StreamsError as error:
        error.extend(where="replay", hint=f"replayed before the error: {counted(writing.written)}; {go_on}")
        raise
    except KeyboardInterrupt:
        note(f"Interrupted: replayed {counted(writing.written)}; {go_on}.")
        raise
    return f"Replayed {counted(writing.written)}."


def _left_out(plan: ReplayPlan) -> str:
    """The records that were left out, for the last line."""
    texts = [f" Left out: {n:,} {why.value}." for why, n in plan.skipped.items()]
    return (f" Replayed before: {plan.replayed_before:,}." if plan.replayed_before else "") + "".join(texts)
