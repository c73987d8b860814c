"""``pystreams diff``: what another version of an application does to what the running one has stored."""

from __future__ import annotations

import json
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pystreams.cli.connection import open_admin, open_broker_of
from pystreams.cli.options import BootstrapServersOption, EmbeddedLogOption, SetOption, StateDirOption
from pystreams.cli.terminal.console import note, show_table
from pystreams.clock import SystemClock
from pystreams.errors import AppLoadError, BrokerUnavailableError

if TYPE_CHECKING:
    from pystreams.config import StreamsConfig
    from pystreams.state.disk.directory import StateDirectory
    from pystreams.take_over.last_run import LastRun
    from pystreams.topology.difference import Change

_WHAT = (
    "A module, one of its attributes or a file, as for [bold]run[/]; or a file that [bold]describe --format json[/]"
    " wrote"
)


def diff(
    old: Annotated[
        str,
        typer.Argument(
            metavar="[OLD]",
            help=f"{_WHAT}. Left out: the version that ran last, on this log or with this state.",
            show_default=False,
        ),
    ],
    new: Annotated[str | None, typer.Argument(metavar="NEW", help=f"{_WHAT}.", show_default=False)] = None,
    json_: Annotated[
        bool, typer.Option("--json", help="One JSON object: verdict, exit code, changes.", show_default=False)
    ] = False,
    setting: SetOption = None,
    state_dir: StateDirOption = None,
    embedded_log: EmbeddedLogOption = None,
    bootstrap_servers: BootstrapServersOption = None,
) -> None:
    """Show what a new version keeps, loses or must build anew: stores, repartition topics, inputs, outputs.

    What is stored is compared by its fields, types and defaults; names of classes and what functions do are not
    compared. Exit codes: [bold]0[/] it takes over as it is, member by member; [bold]1[/] content is lost or must be
    built anew; [bold]2[/] all content is kept, but all members of the old version must stop first.

    [bold]pystreams diff apps.wordcount[/]: what ran last, and apps.wordcount as it is now.
    [bold]pystreams diff running.json apps.wordcount[/]: after [bold]describe --format json > running.json[/] with the
    old code.
    """
    from pystreams.cli.application.loading import load_application
    from pystreams.cli.application.settings import settings_of
    from pystreams.take_over.last_run import LastRun
    from pystreams.take_over.take_over_plan import compared

    if new is None:
        application = load_application(old)
        config = settings_of(
            application,
            setting,
            state_dir=state_dir,
            embedded_log=embedded_log,
            bootstrap_servers=bootstrap_servers,
        )
        last, after = _last_run(config), _shape_of(application, setting)
    else:
        last, after = LastRun(_shape(old, setting)["topology"]), _shape(new, setting)
    before = {"topology": last.topology}
    found = compared(last, after["topology"])
    outcome = _outcome(before["topology"], after["topology"], found)
    if json_:
        print(_json(outcome, after["application_id"], found))
    else:
        _show(before["topology"] == after["topology"], outcome, after["application_id"], found)
    raise typer.Exit(outcome)


class Outcome(IntEnum):
    """What the new version does to the old one's content, as an exit code."""

    TAKES_OVER = 0
    LOSES = 1
    STOP_FIRST = 2


def _outcome(before: Any, after: Any, found: list[Change]) -> Outcome:
    from pystreams.topology.difference import Verdict
    from pystreams.topology.fingerprint import without_headers

    if without_headers(before) == without_headers(after):
        return Outcome.TAKES_OVER
    if any(change.loses or change.verdict is Verdict.UNKNOWN for change in found):
        return Outcome.LOSES
    return Outcome.STOP_FIRST


def _json(outcome: Outcome, application_id: str, found: list[Change]) -> str:
    told = [
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
    return json.dumps({**verdict, "changes": told}, indent=1)


def _show(equal: bool, outcome: Outcome, application_id: str, found: list[Change]) -> None:
    if equal:
        note(f"The topologies are equal ({_NOT_COMPARED}): {_ONE_BY_ONE}")
        return
    show_table(
        ("what", "name", "what becomes of it", "why"),
        [(change.kind, change.name, change.verdict.value, change.why) for change in found],
    )
    note(_advice(outcome, application_id, found))


_NOT_COMPARED = "what functions do is not compared"
_ONE_BY_ONE = "the new version can take the place of the old one, member by member."


def _advice(outcome: Outcome, application_id: str, found: list[Change]) -> str:
    from pystreams.topology.difference import Verdict

    if outcome is Outcome.TAKES_OVER:
        return f"But for headers in stores the topologies are equal ({_NOT_COMPARED}): {_ONE_BY_ONE}"
    stop = "Stop all members of the old version before you start the new one: a group runs one topology."
    if outcome is Outcome.STOP_FIRST:
        return f"{stop}\nAll content that is used on is kept ({_NOT_COMPARED})."
    lost = [f"{change.kind} {change.name}" for change in found if change.loses]
    if any(change.verdict.needs_reset for change in found):
        stop += (
            "\nThen reset the application (pystreams reset, which deletes its internal topics and begins with the first"
            f" record), or give it another name than {application_id}, or backfill."
        )
    if any(change.verdict is Verdict.UNKNOWN for change in found):
        stop += (
            "\nWhat cannot be compared may lose its content, too: write both descriptions with this version of"
            " pystreams (describe --format json) to know."
        )
    return f"{stop}\nContent is lost: {', '.join(lost)}." if lost else stop


def _shape(reference: str, setting: list[str] | None) -> Any:
    if reference.endswith(".json"):
        return read_shape(Path(reference))
    from pystreams.cli.application.loading import load_application

    return _shape_of(load_application(reference), setting)


def _shape_of(application: Any, setting: list[str] | None) -> Any:
    from pystreams.cli.commands.describe import describe_json

    return json.loads(describe_json(application, setting))


def _last_run(config: StreamsConfig) -> LastRun:
    """As the log has it, or the state if that cannot be asked. Raises ``AppLoadError`` if neither knows any."""
    from pystreams.state.disk.directory import StateDirectory
    from pystreams.take_over.last_run import LastRun
    from pystreams.take_over.take_over_plan import without_unfinished

    directory = StateDirectory(config.state_dir, config.application_id)
    last = _told_by_log(config, directory)
    if last is not None:
        return without_unfinished(last)
    content = directory.topology()
    if content is None:
        raise AppLoadError(
            f"no version of {config.application_id} has run on this log, nor with this state",
            where=str(config.state_dir / config.application_id),
            hint="give the old version, too: its module, or a file that describe --format json wrote with its code",
        )
    return LastRun.from_json(content)


def _told_by_log(config: StreamsConfig, directory: StateDirectory) -> LastRun | None:
    from pystreams.take_over.last_run import KeptTopology

    try:
        with open_broker_of(config) as broker, open_admin(broker) as admin:
            return KeptTopology(broker, admin, directory, config.application_id, SystemClock()).read()
    except BrokerUnavailableError:
        return None


def read_shape(path: Path) -> Any:
    """What ``describe --format json`` wrote. Raises ``AppLoadError`` for another file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise AppLoadError(f"{path} cannot be read as a topology", why=str(error), hint=_HOW) from error
    if not isinstance(content, dict) or not isinstance(content.get("topology"), list):
        raise AppLoadError(f"{path} holds no topology", hint=_HOW)
    return content


_HOW = "write it with: pystreams describe MODULE --format json > FILE"
