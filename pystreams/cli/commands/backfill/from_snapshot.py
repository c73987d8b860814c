"""``pystreams backfill --from-snapshot``: hands the snapshot of an earlier backfill over to the live application."""

from __future__ import annotations

from pystreams.cli.commands.backfill.outputs import HandOver, open_target
from pystreams.cli.commands.backfill.program import Program
from pystreams.cli.commands.backfill.report import note_handed_over, show_handed_over
from pystreams.cli.terminal.console import note
from pystreams.errors import ConfigError


def hand_over_snapshot(program: Program, folder: str, target: HandOver, application: str) -> None:
    """Hand a snapshot over, and restore the application's stores into its state directory on this machine.

    Raises ``ConfigError`` for a target that is not a log, and what ``restore_snapshot`` raises.
    """
    if target.to not in {"kafka", "embedded"}:
        raise ConfigError(
            "--from-snapshot needs a log to hand the snapshot over to",
            hint="add --hand-over kafka or --hand-over embedded",
        )
    from pystreams.backfill.snapshot import restore_snapshot

    config = program.config
    place = target.place(config, folder)
    note(f"Handing over {folder} to {place}")
    with open_target(target.to, config) as broker:
        done = restore_snapshot(folder, program.for_workers, broker, settings=program.settings)
    show_handed_over(done)
    note_handed_over(place, config.application_id, application, before=done.complete_before)
