"""``pystreams diff``: what another version of an application does to what the running one has stored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pystreams.cli.console import note, show_table
from pystreams.cli.options import SetOption, StateDirOption
from pystreams.errors import AppLoadError

if TYPE_CHECKING:
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
            help=f"{_WHAT}. Left out: the version that ran on this machine last.",
            show_default=False,
        ),
    ],
    new: Annotated[str | None, typer.Argument(metavar="NEW", help=f"{_WHAT}.", show_default=False)] = None,
    setting: SetOption = None,
    state_dir: StateDirOption = None,
) -> None:
    """Show what a new version keeps, loses or must build anew: stores, repartition topics, inputs, outputs.

    [bold]pystreams diff apps.wordcount[/]: what ran here last, and apps.wordcount as it is now.
    [bold]pystreams diff running.json apps.wordcount[/]: after [bold]describe --format json > running.json[/] with the
    old code.
    """
    from pystreams.cli.loading import load_application
    from pystreams.topology.difference import changes
    from pystreams.topology.fingerprint import without_headers

    if new is None:
        application = load_application(old)
        after = _shape_of(application, setting)
        before = _last_run(application, setting, state_dir)
    else:
        before, after = _shape(old, setting), _shape(new, setting)
    found = changes(before["topology"], after["topology"])
    if before["topology"] == after["topology"]:
        note(f"The topologies are equal (what functions do is not compared): {_ONE_BY_ONE}")
        return
    show_table(
        ("what", "name", "what becomes of it", "why"),
        [(change.kind, change.name, change.verdict.value, change.why) for change in found],
    )
    if without_headers(before["topology"]) == without_headers(after["topology"]):
        note(f"But for headers in stores the topologies are equal: {_ONE_BY_ONE}")
        return
    note(_advice(found, after["application_id"]))


_ONE_BY_ONE = "the new version can take the place of the old one, member by member."


def _advice(found: list[Change], application_id: str) -> str:
    stop = "Stop all members of the old version before you start the new one: a group runs one topology."
    if any(change.verdict.needs_reset for change in found):
        return (
            f"{stop}\nThen reset the application (pystreams reset, which deletes its internal topics and begins with"
            f" the first record), or give it another name than {application_id}, or backfill."
        )
    return stop


def _shape(reference: str, setting: list[str] | None) -> Any:
    if reference.endswith(".json"):
        return read_shape(Path(reference))
    from pystreams.cli.loading import load_application

    return _shape_of(load_application(reference), setting)


def _shape_of(application: Any, setting: list[str] | None) -> Any:
    from pystreams.cli.describe import describe_json

    return json.loads(describe_json(application, setting))


def _last_run(application: Any, setting: list[str] | None, state_dir: Path | None) -> Any:
    from pystreams.cli.settings import settings_of
    from pystreams.state.directory import StateDirectory

    config = settings_of(application, setting, state_dir=state_dir)
    content = StateDirectory(config.state_dir, config.application_id).topology()
    if content is None:
        raise AppLoadError(
            f"no version of {config.application_id} has run on this machine",
            where=str(config.state_dir / config.application_id),
            hint="give the old version, too: its module, or a file that describe --format json wrote with its code",
        )
    return content


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
