"""``pystreams diff``: shows what a new version of an application would do to the content that the running version has
stored."""

from __future__ import annotations

import json
from collections.abc import Callable
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pystreams.cli.connection import open_admin, open_broker_of
from pystreams.cli.options import BootstrapServersOption, EmbeddedLogOption, SetOption, StateDirOption
from pystreams.cli.terminal.console import note, show_table
from pystreams.clock import SystemClock
from pystreams.errors import AppLoadError, BrokerError, BrokerUnavailableError

if TYPE_CHECKING:
    from pystreams.broker.port import Admin
    from pystreams.config import StreamsConfig
    from pystreams.state.disk.directory import StateDirectory
    from pystreams.take_over.last_run import LastRun
    from pystreams.take_over.losses import Waiting
    from pystreams.topology.difference import Change

_WHAT = (
    "A module, one of its attributes or a file, as for [bold]run[/]; or a file that [bold]describe --format "
    "json[/]"
    " wrote"
)


def diff(
    old: Annotated[
        str,
        typer.Argument(
            metavar="[OLD]",
            help=f"{_WHAT}. Default: the version that ran last, on this log or with this state.",
            show_default=False,
        ),
    ],
    new: Annotated[str | None, typer.Argument(metavar="NEW", help=f"{_WHAT}.", show_default=False)] = None,
    json_: Annotated[
        bool,
        typer.Option(
            "--json", help="One JSON object: verdict, exit code, changes, advice.", show_default=False
        ),
    ] = False,
    setting: SetOption = None,
    state_dir: StateDirOption = None,
    embedded_log: EmbeddedLogOption = None,
    bootstrap_servers: BootstrapServersOption = None,
) -> None:
    """Show what a new version keeps, loses or must rebuild: stores, repartition topics, inputs, outputs.

    Stored types are compared by their fields, types and defaults; names of classes and the code of functions are not
    compared. Exit codes: [bold]0[/] a rolling upgrade works, one member at a time; [bold]1[/] content is lost or must
    be rebuilt; [bold]2[/] all content is kept, but all members of the old version must stop first.

    [bold]pystreams diff apps.wordcount[/]: the version that ran last, and apps.wordcount as it is now.
    [bold]pystreams diff running.json apps.wordcount[/]: after [bold]describe --format json > running.json[/] with the
    old code.
    """
    from pystreams.cli.application.loading import load_application
    from pystreams.cli.application.settings import settings_of
    from pystreams.take_over.last_run import LastRun

    if new is None:
        application = load_application(old)
        config = settings_of(
            application,
            setting,
            state_dir=state_dir,
            embedded_log=embedded_log,
            bootstrap_servers=bootstrap_servers,
        )
        after = _shape_of(application, setting)
        last, waiting = _last_run(config, after["topology"])
    else:
        last, after = LastRun(_shape(old, setting)["topology"]), _shape(new, setting)
        waiting = None
    if not json_:
        raise typer.Exit(show_changes(last, after, waiting=waiting))
    found = _changes(last, after, waiting)
    outcome = _outcome(last.topology, after["topology"], found)
    print(_json(outcome, after["application_id"], found, _advice(outcome, last, after["topology"], found)))
    raise typer.Exit(outcome)


class Outcome(IntEnum):
    """The effect of the new version on the old version's content, as an exit code."""

    TAKES_OVER = 0
    LOSES = 1
    STOP_FIRST = 2


def show_changes(
    last: LastRun,
    after: Any,
    say: Callable[[str], None] = note,
    waiting: Waiting | None = None,
    *,
    restarts: bool = False,
) -> Outcome:
    """Show what the new version ``after`` (an object of ``describe --format json``) does to the content of ``last``.
    ``say`` gets what is not in the table; ``waiting`` is None if the log was not asked. ``restarts``: the caller stops
    the old version itself."""
    found = _changes(last, after, waiting)
    outcome = _outcome(last.topology, after["topology"], found)
    if last.topology != after["topology"]:
        show_table(
            ("what", "name", "what becomes of it", "why"),
            [(change.kind, change.name, change.verdict.value, change.why) for change in found],
        )
    advice = [
        line for line in _advice(outcome, last, after["topology"], found) if not (restarts and line == _STOP)
    ]
    if advice:
        say("\n".join(advice))
    return outcome


def _changes(last: LastRun, after: Any, waiting: Waiting | None) -> list[Change]:
    from pystreams.take_over.losses import as_topics_are
    from pystreams.take_over.take_over_plan import compared

    found = compared(last, after["topology"])
    return found if waiting is None else as_topics_are(last, after["topology"], found, waiting)


def _outcome(before: Any, after: Any, found: list[Change]) -> Outcome:
    from pystreams.topology.difference import Verdict
    from pystreams.topology.fingerprint import without_headers

    if without_headers(before) == without_headers(after):
        return Outcome.TAKES_OVER
    if any(change.loses or change.verdict is Verdict.UNKNOWN for change in found):
        return Outcome.LOSES
    return Outcome.STOP_FIRST


def _json(outcome: Outcome, application_id: str, found: list[Change], advice: list[str]) -> str:
    changes = [
        {
            "kind": change.kind,
            "name": change.name,
            "verdict": change.verdict.name.lower(),
            "loses": change.loses,
            "why": change.why,
            "fields": list(change.fields),
        }
        for change in found
    ]
    verdict = {"application_id": application_id, "verdict": outcome.name.lower(), "exit_code": int(outcome)}
    return json.dumps({**verdict, "changes": changes, "advice": advice}, indent=1)


_STOP = "Stop all members of the old version before you start the new one: a group runs one topology."
_NOT_COMPARED = "the code of functions is not compared"
_ONE_BY_ONE = "the new version can replace the old one by a rolling upgrade, one member at a time."


def _advice(outcome: Outcome, last: LastRun, now: Any, found: list[Change]) -> list[str]:
    """Lines with advice."""
    from pystreams.topology.difference import Verdict

    if outcome is Outcome.TAKES_OVER:
        equal = "equal" if last.topology == now else "equal, except for headers in stores"
        return [f"The topologies are {equal} ({_NOT_COMPARED}): {_ONE_BY_ONE}"]
    advice = [_STOP]
    if outcome is Outcome.STOP_FIRST:
        kept = "The content of all stores and topics that the new version uses is kept"
        return [*advice, f"{kept} ({_NOT_COMPARED})."]
    if any(change.verdict is Verdict.UNKNOWN for change in found):
        advice.append(
            "Content that cannot be compared may be lost, too: to find out, write both descriptions with this"
            " version of pystreams (describe --format json)."
        )
    return [*advice, *_losses(last, now, found)]


def _losses(last: LastRun, now: Any, found: list[Change]) -> list[str]:
    """Lines with the losses, and the ways to continue."""
    from pystreams.take_over.losses import has_other_partitions, losing_stores, lost_with
    from pystreams.take_over.ways_on import ways_on, what_waits

    before, lost = last.topology, [change for change in found if change.loses]
    if not lost:
        return []
    stores = losing_stores(last, now, found)
    buffers = lost_with(stores, before, now)
    names = (
        f"{change.kind} {change.name}{what_waits(change.name, buffers)}"
        for change in lost
        if change.name not in buffers
    )
    topics = [change for change in lost if change.kind != "store"]
    # The others lose their records when the old version stops: the table says that it must catch up first.
    for_good = [change for change in topics if has_other_partitions(change, before, now)]
    losing = [*stores.values(), *for_good] or topics
    ways = ways_on(losing, buffers, before, now) if losing else []
    return [f"Content is lost: {', '.join(names)}.", *(f"- {way}" for way in ways)]


def _shape(reference: str, setting: list[str] | None) -> Any:
    if reference.endswith(".json"):
        return read_shape(Path(reference))
    from pystreams.cli.application.loading import load_application

    return _shape_of(load_application(reference), setting)


def _shape_of(application: Any, setting: list[str] | None) -> Any:
    from pystreams.cli.commands.describe import describe_json

    return json.loads(describe_json(application, setting))


def _last_run(config: StreamsConfig, now: Any) -> tuple[LastRun, Waiting | None]:
    """The last run as the log has it, with the records that wait in its topics, or as the state directory has it if
    the log cannot be reached. Nothing is counted if the topology ``now`` is the same. Raises ``AppLoadError`` if
    neither has a last run."""
    from pystreams.state.disk.directory import StateDirectory
    from pystreams.take_over.last_run import LastRun
    from pystreams.take_over.take_over_plan import without_unfinished

    directory = StateDirectory(config.state_dir, config.application_id)
    found = _last_run_in_log(config, directory, now)
    if found is not None:
        last, waiting = found
        return without_unfinished(last), waiting
    content = directory.topology()
    if content is None:
        raise AppLoadError(
            f"no version of {config.application_id} has run on this log or with this state directory",
            where=str(config.state_dir / config.application_id),
            hint="name the old version, too: its module, or a file that describe --format json wrote from "
            "its code",
        )
    return LastRun.from_json(content), None


def _last_run_in_log(
    config: StreamsConfig, directory: StateDirectory, now: Any
) -> tuple[LastRun, Waiting | None] | None:
    from pystreams.take_over.last_run import KeptTopology

    try:
        with open_broker_of(config) as broker, open_admin(broker) as admin:
            last = KeptTopology(broker, admin, directory, config.application_id, SystemClock()).read()
            if last is None:
                return None
            same = last.topology == now and last.unfinished is None
            return last, None if same else _waiting(admin, config.application_id, last)
    except BrokerUnavailableError:
        return None


def _waiting(admin: Admin, application_id: str, last: LastRun) -> Waiting | None:
    """The numbers of records that wait in the topics of the last run; None if this user may not read them."""
    from pystreams.take_over.unprocessed import unprocessed

    internal = {topic for part in last.topology for topic in part.get("internal", {})}
    try:
        return unprocessed(admin, application_id, internal).__getitem__ if internal else None
    except BrokerUnavailableError:
        raise
    except BrokerError as error:
        note(f"It was not counted how many records wait in repartition topics: {error}")
        return None


def read_shape(path: Path) -> Any:
    """Read a file that ``describe --format json`` wrote. Raises ``AppLoadError`` for another file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise AppLoadError(f"{path} cannot be read as a topology", why=str(error), hint=_HOW) from error
    if not isinstance(content, dict) or not isinstance(content.get("topology"), list):
        raise AppLoadError(f"{path} does not contain a topology", hint=_HOW)
    return content


_HOW = "write it with: pystreams describe MODULE --format json > FILE"
