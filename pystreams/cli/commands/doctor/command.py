"""``pystreams doctor``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from pystreams.cli.options import (
    ApplicationArgument,
    ApplicationIdOption,
    BootstrapServersOption,
    EmbeddedLogOption,
    SetOption,
    StateDirOption,
    flags_of_place,
)
from pystreams.cli.terminal.console import note, output
from pystreams.cli.terminal.exits import Exit
from pystreams.plural import counted

if TYPE_CHECKING:
    from pystreams.cli.commands.doctor.finding import Finding


def doctor(
    application: ApplicationArgument,
    application_id: ApplicationIdOption = None,
    state_dir: StateDirOption = None,
    setting: SetOption = None,
    embedded_log: EmbeddedLogOption = None,
    bootstrap_servers: BootstrapServersOption = None,
) -> None:
    """Find out whether an application can run here, before it does.

    Looks at this machine, the log, the topics with their settings, the
    stored content of the last run, the group, and the times of the input.
    Nothing is changed. Exit code 1 says that it could not start.

    [bold]pystreams doctor apps.wordcount --bootstrap-servers localhost:9092[/]
    """
    from pystreams.cli.application.loading import load_application
    from pystreams.cli.application.settings import settings_of
    from pystreams.cli.commands.doctor.examination import Examination
    from pystreams.cli.commands.doctor.finding import Level

    app = load_application(application)
    flags = flags_of_place(application_id, state_dir, embedded_log, bootstrap_servers)
    counts = dict.fromkeys(Level, 0)
    for finding in Examination(app, settings_of(app, setting, **flags)).findings():
        _show(finding)
        counts[finding.level] += 1
    remarks = f", {counted(counts[Level.REMARK], 'remark')}" if counts[Level.REMARK] else ""
    if counts[Level.BAD]:
        note(f"It could not start: {counted(counts[Level.BAD], 'problem')}{remarks}.")
        raise typer.Exit(Exit.FAILED)
    note(f"It can start{remarks}.")


def _show(finding: Finding) -> None:
    from rich.text import Text

    sign, colour = finding.level.value
    line = Text.assemble((f"{sign:<3}", colour), f"{finding.subject}: {finding.text}")
    if finding.hint:
        line.append(f"\n   -> {finding.hint}", style="dim")
    output().print(line)
