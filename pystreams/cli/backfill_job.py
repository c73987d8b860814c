"""One backfill as the command line runs it: plan or compute, emit, hand over, and tell what came of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from pystreams.cli.application import input_topics, output_topics
from pystreams.cli.backfill_inputs import Places, everywhere, open_sources, parse_sources, parse_until
from pystreams.cli.backfill_outputs import (
    Emit,
    HandOver,
    log_for,
    open_target,
    parse_emit,
    parse_hand_over,
)
from pystreams.cli.backfill_progress import Display, display_for_terminal
from pystreams.cli.backfill_report import show_plan, show_report, tell_dropped, tell_handed_over, titles
from pystreams.cli.backfill_setup import NO_SPARK, Program, load_program, require_packages
from pystreams.cli.backfill_snapshot import hand_over_snapshot
from pystreams.cli.console import note
from pystreams.cli.exits import Exit
from pystreams.cli.options import CONF_EXAMPLE
from pystreams.cli.settings import parse_pairs
from pystreams.clock import SystemClock
from pystreams.errors import ConfigError, StateError
from pystreams.runtime.client_start import build_topology

if TYPE_CHECKING:
    from pystreams.backfill.cut import Until
    from pystreams.backfill.executor import Executor
    from pystreams.backfill.handover import HandedOver
    from pystreams.backfill.result import BackfillResult
    from pystreams.backfill.run import Planned
    from pystreams.backfill.sources import Source

#: Where backfills are staged unless somebody says where.
DEFAULT_STAGING = Path(".pystreams") / "backfill"


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
        hand_over.check(program.config, approximate=self.approximate)
        config = program.config
        if self.from_snapshot is not None:
            hand_over_snapshot(program, self.from_snapshot, hand_over, self.application)
            return
        places = Places(
            config.embedded_log, config.bootstrap_servers, config.client_settings, self.approximate
        )
        built = build_topology(program.loaded, config)
        source = open_sources(texts, input_topics(built), places)
        run = _Run(self, program, source, until, hand_over, emit, output_topics(built))
        # An earlier backfill's state may be where only Spark can read it.
        planned = run.planned(None) if self.previous is None else None
        if planned is not None and dry_run:
            run.show_plan(planned)
            return
        run.check_staging()
        if planned is not None and not self.resume:
            run.check_target(planned)
        try:
            with run.executor() as executor:
                planned = planned or run.planned(executor)
                if not dry_run:
                    with display_for_terminal(SystemClock()) as display:
                        run.compute(planned, executor, display)
        except KeyboardInterrupt:
            note(f"Stopped. Slices that are done stay in {run.staging}: go on with --resume.")
            raise typer.Exit(Exit.INTERRUPTED) from None
        if dry_run:
            run.show_plan(planned)
        else:
            run.show_end()

    def _check_together(self, *, dry_run: bool) -> None:
        """Raises ``ConfigError`` for options that do not go together."""
        parse_pairs(self.spark_conf, CONF_EXAMPLE)
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
        }
        needless = [name for name, value in given.items() if value]
        if self.from_snapshot is not None and needless:
            raise ConfigError(
                f"--from-snapshot does not go with {' and '.join(needless)}",
                why="what is in a snapshot has been computed: nothing is read, and nothing is staged",
                hint="leave one of them out",
            )


class _Run:
    """A backfill whose options are understood."""

    def __init__(
        self,
        job: BackfillJob,
        program: Program,
        source: Source,
        until: Until,
        hand_over: HandOver,
        emit: Emit,
        outputs: Collection[str],
    ) -> None:
        self._job = job
        self._program = program
        self._source = source
        self._until = until
        self._hand_over = hand_over
        self._emit = emit
        self._outputs = outputs
        self._result: BackfillResult | None = None
        self._emitted: Mapping[str, int] = {}
        self._handed_over: HandedOver | None = None
        self.staging = job.staging or str(DEFAULT_STAGING / program.config.application_id)

    @contextmanager
    def executor(self) -> Iterator[Executor | None]:
        """Spark, or None for this process."""
        job = self._job
        if job.master == NO_SPARK:
            yield None
            return
        from pystreams.cli.backfill_spark import spark_executor

        name = self._program.config.application_id
        log = None if job.verbose else DEFAULT_STAGING / f"{name}.spark.log"
        conf = parse_pairs(job.spark_conf, CONF_EXAMPLE)
        note(f"Starting Spark on {job.master}" + (f"; what it says is in {log}" if log else ""))
        with spark_executor(job.master, f"pystreams backfill {name}", conf, job.py_files, log) as executor:
            yield executor

    @cached_property
    def _partitions(self) -> Mapping[str, int]:
        """How wide output topics are on the log that is written to: that decides where records belong."""
        config = self._program.config
        on_kafka = self._hand_over.to != "embedded" and config.bootstrap_servers is not None
        if not on_kafka and not config.embedded_log.exists():
            return {}
        with open_target(self._hand_over.to, config) as broker, closing(broker.admin()) as admin:
            found = admin.describe_topics()
        return {name: found[name].partitions for name in self._outputs if name in found}

    def _common(self) -> dict[str, Any]:
        given = {
            "sources": self._source,
            "until": self._until,
            "settings": self._program.settings,
            "partitions": self._partitions,
            "previous": self._job.previous,
        }
        if self._job.commit_records is not None:
            given["commit_records"] = self._job.commit_records
        return given

    def planned(self, executor: Executor | None) -> Planned:
        """The plan, and the cut as of now."""
        from pystreams.backfill.api import plan_backfill

        return plan_backfill(self._program.for_workers, executor=executor, **self._common())

    def compute(self, planned: Planned, executor: Executor | None, display: Display) -> None:
        """All slices, then what is to be left elsewhere."""
        from pystreams.backfill.api import backfill

        display.expect(titles(planned.plan))
        display.step("beginning")
        self._result = backfill(
            self._program.for_workers,
            executor=executor,
            staging=self.staging,
            resume=self._job.resume,
            overwrite=self._job.overwrite,
            progress=display.update,
            **self._common(),
        )
        self.check_target(self._result)
        self._emit_records(self._result, display)
        self._hand_over_state(self._result, display)

    def check_staging(self) -> None:
        """Raises ``StateError`` if a folder of this machine holds a backfill (in other places the executor looks), and
        ``ConfigError`` if it is the one to go on from."""
        from pystreams.backfill.manifest import MANIFEST_FILE

        if self._job.previous is not None and everywhere(self._job.previous) == everywhere(self.staging):
            raise ConfigError(
                f"{self.staging} cannot be the earlier backfill and the new one",
                why="what the new one stages would take the place of what it goes on from",
                hint="stage the new one elsewhere: --staging PATH",
            )
        known = self._job.resume or self._job.overwrite
        if not known and "://" not in self.staging and (Path(self.staging) / MANIFEST_FILE).exists():
            raise StateError(
                f"{self.staging} holds a backfill already",
                hint="go on with it: --resume; begin anew in its place: --overwrite; or use another: --staging PATH",
            )

    def check_target(self, computed: Planned | BackfillResult) -> None:
        """Raises what the hand-over would: before hours of work, and before records are emitted that belong to it."""
        if self._hand_over.to in {"kafka", "embedded"}:
            from pystreams.backfill.checks import check_target

            with open_target(self._hand_over.to, self._program.config) as broker:
                check_target(computed, broker)

    def _emit_records(self, result: BackfillResult, display: Display) -> None:
        if self._emit.to == "none":
            return
        from pystreams.backfill.emitting import emit

        display.step(f"writing records to {self._emit.folder or 'their topics'}")
        if self._emit.to == "parquet":
            self._emitted = emit(result, to=everywhere(self._emit.folder))
            return
        with open_target(self._hand_over.to, self._program.config) as broker:
            self._emitted = emit(result, to=broker)

    def _hand_over_state(self, result: BackfillResult, display: Display) -> None:
        config, to = self._program.config, self._hand_over
        if to.to == "none":
            return
        display.step(f"handing over to {to.place(config, self.staging)}")
        if to.to == "snapshot":
            from pystreams.backfill.snapshot import write_snapshot

            write_snapshot(result, everywhere(to.snapshot(self.staging)))
            return
        from pystreams.backfill.handover import hand_over

        with open_target(to.to, config) as broker:
            self._handed_over = hand_over(result, broker)

    def show_plan(self, planned: Planned) -> None:
        """For --dry-run."""
        from pystreams.backfill.notes import notes

        show_plan(planned, self._writes(planned), notes(planned.plan, planned.loaded))
        note("Nothing was done: this is a dry run.")

    def _writes(self, planned: Planned) -> list[list[str]]:
        """What is written, and where."""
        config, hand_over, plan = self._program.config, self._hand_over, planned.plan
        rows = [["slices, in Parquet", self.staging]]
        if self._emit.to != "none":
            place = self._emit.folder or log_for(hand_over.to, config)
            sinks = sorted({topic for one in plan.slices for topic in one.sinks})
            rows += [[f"records for {topic}", place] for topic in sinks]
        if hand_over.to == "none":
            return rows
        place = hand_over.place(config, self.staging)
        stores = [store for one in plan.slices if one.final for store in one.stores.items()]
        rows += [[f"store {name}, changelog {changelog}", place] for name, changelog in stores if changelog]
        rows.append([f"offsets of group {plan.application_id}", place])
        if hand_over.to != "snapshot":
            from pystreams.runtime.hand_over_check import manifest_topic

            rows.append([f"record of the hand-over, topic {manifest_topic(plan.application_id)}", place])
        return rows

    def show_end(self) -> None:
        """The report, and what to do next."""
        result = self._result
        assert result is not None, "it was computed"
        show_report(result.plan, result.manifest, self._emitted, self._handed_over)
        tell_dropped(result.manifest)
        name = self._program.config.application_id
        match self._hand_over.to:
            case "kafka" | "embedded":
                before = self._handed_over is not None and self._handed_over.complete_before
                place = self._hand_over.place(self._program.config, self.staging)
                tell_handed_over(place, name, self._job.application, before=before)
            case "snapshot":
                folder = self._hand_over.snapshot(self.staging)
                note(
                    f"Written to {folder}. To go on from it: pystreams backfill {self._job.application}"
                    f" --from-snapshot {folder} --hand-over kafka or embedded."
                )
            case "none" if self._job.approximate:
                note(f"Computed, and staged in {self.staging}.")
            case "none":
                note(
                    f"Computed, and staged in {self.staging}. To hand it over to the live application: the same"
                    " command with --resume --hand-over kafka, embedded or snapshot."
                )
