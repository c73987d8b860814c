"""One backfill as the command line asks for it: which options go together, and in which order things are done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import typer

from pystreams.backfill.places import shown
from pystreams.cli.application import input_topics, output_topics
from pystreams.cli.backfill_inputs import Places, open_sources, parse_sources, parse_until
from pystreams.cli.backfill_outputs import parse_emit, parse_hand_over
from pystreams.cli.backfill_progress import display_for_terminal
from pystreams.cli.backfill_run import BackfillRun
from pystreams.cli.backfill_setup import NO_SPARK, for_spark_alone, load_program, require_packages
from pystreams.cli.backfill_snapshot import hand_over_snapshot
from pystreams.cli.console import note
from pystreams.cli.exits import Exit
from pystreams.cli.options import CONF_EXAMPLE
from pystreams.cli.settings import parse_pairs
from pystreams.clock import SystemClock
from pystreams.errors import ConfigError, StateError
from pystreams.runtime.startup.client_start import build_topology


@dataclass(frozen=True)
class BackfillJob:
    """What the command line says, as text."""

    application: str
    sources: Sequence[str]
    until: str
    previous: str | None
    from_snapshot: str | None
    approximate: bool
    hand_over: str
    emit: str
    master: str
    spark_conf: Sequence[str]
    py_files: Sequence[str]
    staging: str | None
    resume: bool
    overwrite: bool
    commit_records: int | None
    verbose: bool
    flags: Mapping[str, Any]
    settings: Sequence[str]

    def run(self, *, dry_run: bool) -> None:
        """Do it. What can be known to be wrong is refused before Spark is started. Raises ``StreamsError``."""
        texts, until = parse_sources(self.sources), parse_until(self.until)
        hand_over, emit = parse_hand_over(self.hand_over), parse_emit(self.emit)
        self._check_together(dry_run=dry_run)
        require_packages(NO_SPARK if self.from_snapshot is not None else self.master)
        program = load_program(self.application, self.flags, self.settings)
        config = program.config
        hand_over.check(config, approximate=self.approximate)
        if self.from_snapshot is not None:
            hand_over_snapshot(program, self.from_snapshot, hand_over, self.application)
            return
        places = Places(
            config.embedded_log, config.bootstrap_servers, config.client_settings, self.approximate
        )
        built = build_topology(program.loaded, config)
        source = open_sources(texts, sorted({*input_topics(built), *built.global_topics}), places)
        run = BackfillRun(self, program, source, until, hand_over, emit, output_topics(built))
        try:
            if dry_run:
                run.look()
            else:
                self._compute(run)
        except KeyboardInterrupt as stopped:
            note(str(stopped) or f"Stopped. Slices that are done stay in {run.place}: go on with --resume.")
            raise typer.Exit(Exit.INTERRUPTED) from None
        except OSError as error:
            raise StateError(
                "a file or folder cannot be used",
                where=str(error.filename or ""),
                why=shown(error.strerror or str(error)),
                hint=f"mend that; what is staged in {run.place} stays: go on with --resume",
            ) from None

    def _compute(self, run: BackfillRun) -> None:
        run.check_staging()
        # What was begun, or done before, may lie where only Spark can read it.
        planned = None if run.needs_spark_to_plan else run.planned(None)
        if planned is not None:
            run.check_target(planned)
        with run.executor() as executor:
            if planned is None:
                planned = run.planned(executor)
                run.check_target(planned)
            with display_for_terminal(SystemClock()) as display:
                run.compute(planned, executor, display)
        run.show_end()

    def _check_together(self, *, dry_run: bool) -> None:
        """Raises ``ConfigError`` for options that do not go together."""
        parse_pairs(self.spark_conf, CONF_EXAMPLE)
        for_spark = {"--conf": self.spark_conf, "--py-files": self.py_files}
        idle = [name for name, value in for_spark.items() if value]
        if self.master == NO_SPARK and idle:
            raise for_spark_alone(idle)
        if self.resume and self.overwrite:
            raise ConfigError(
                "--resume does not go with --overwrite",
                why="one goes on with what is staged, the other begins anew in its place",
                hint="leave one of them out",
            )
        given = {
            "--source": self.sources,
            "--until": self.until != "now",
            "--previous": self.previous,
            "--approximate": self.approximate,
            "--emit": self.emit != "none",
            "--staging": self.staging,
            "--resume": self.resume,
            "--overwrite": self.overwrite,
            "--commit-records": self.commit_records,
            "--dry-run": dry_run,
            **for_spark,
        }
        needless = [name for name, value in given.items() if value]
        if self.from_snapshot is not None and needless:
            raise ConfigError(
                f"--from-snapshot does not go with {' and '.join(needless)}",
                why="what is in a snapshot has been computed: nothing is read, and nothing is staged",
                hint="leave one of them out",
            )
