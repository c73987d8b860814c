"""One backfill from the command line: plans, checks, computes, writes the results to their target, and reports."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pystreams.backfill.display.slice_meter import titles
from pystreams.backfill.locations import is_url, shown
from pystreams.cli.application.settings import parse_pairs
from pystreams.cli.application.topics import input_topics, output_topics
from pystreams.cli.commands.backfill.choosing import before_the_plan, for_plan
from pystreams.cli.commands.backfill.from_snapshot import hand_over_snapshot
from pystreams.cli.commands.backfill.inputs import (
    Places,
    open_sources,
    parse_boundary,
    parse_sources,
    parse_until,
    tables_among,
)
from pystreams.cli.commands.backfill.options import BackfillOptions
from pystreams.cli.commands.backfill.outputs import (
    Emit,
    HandOver,
    log_for,
    open_target,
    opens_kafka,
    parse_emits,
    parse_hand_over,
    shown_table,
)
from pystreams.cli.commands.backfill.program import Program, load_program
from pystreams.cli.commands.backfill.progress import Display, display_for_terminal
from pystreams.cli.commands.backfill.report import (
    note_boundaries,
    note_handed_over,
    note_joins_in_vain,
    note_left_out,
    show_plan,
    show_report,
)
from pystreams.cli.commands.backfill.report_json import plan_json, report_json
from pystreams.cli.masters import AUTO, Master, open_executor
from pystreams.cli.options import CONF_EXAMPLE
from pystreams.cli.spark import require_packages
from pystreams.cli.terminal.console import note, print_json
from pystreams.cli.terminal.stopping import stopping
from pystreams.clock import SystemClock
from pystreams.dsl.builder import build_topology
from pystreams.errors import StateError, StreamsError
from pystreams.times import show_time

if TYPE_CHECKING:
    from pystreams.backfill.compute.backfill_result import BackfillResult
    from pystreams.backfill.compute.driver import Planned
    from pystreams.backfill.compute.executor import Executor
    from pystreams.backfill.handover.hand_over import HandedOver
    from pystreams.backfill.plan.cut import Until
    from pystreams.backfill.sources import DataFrameSource, Source

#: Where backfills are staged by default.
DEFAULT_STAGING = Path(".pystreams") / "backfill"


def run_backfill(options: BackfillOptions, *, dry_run: bool) -> None:
    """Run the backfill that the options describe, or only print its plan with ``dry_run``. Options are checked before
    Spark is started. Raises ``StreamsError``."""
    texts, until = parse_sources(options.sources), parse_until(options.until)
    boundary = None if options.boundary is None else parse_boundary(options.boundary)
    hand_over = parse_hand_over(options.hand_over)
    options.check_together(dry_run=dry_run)
    master = Master(options.master)
    needs_spark = options.from_snapshot is None and options.master != AUTO and master.is_spark
    require_packages(spark=needs_spark, connect=needs_spark and master.is_connect)
    emit = parse_emits(options.emits)
    emit.check(options.master)
    program = load_program(options.application, options.flags, options.settings)
    config = program.config
    hand_over.check(config, approximate=options.approximate)
    if options.from_snapshot is not None:
        hand_over_snapshot(program, options.from_snapshot, hand_over, options.application)
        return
    places = Places(
        config.embedded_log,
        config.bootstrap_servers,
        config.client_settings,
        options.approximate,
        log_after_tables=boundary is not None,
        reads_committed=config.processing_guarantee == "exactly_once_v2",
    )
    built = build_topology(program.loaded, config)
    sources = open_sources(texts, sorted({*input_topics(built), *built.global_topics}), places)
    if boundary is None:
        hand_over.check_tables(tables_among(sources))
    job = BackfillJob(options, program, sources, until, boundary, hand_over, emit, output_topics(built))
    try:
        with stopping(f"Stopped. Finished slices stay in {job.place}: continue with --resume."):
            if dry_run:
                job.look()
            else:
                _compute(job)
    except OSError as error:
        raise StateError(
            "a file or folder cannot be used",
            where=str(error.filename or ""),
            why=shown(error.strerror or str(error)),
            hint=f"correct that, and continue with --resume: finished slices stay in {job.place}",
        ) from None


def _compute(job: BackfillJob) -> None:
    job.check_staging()
    # An unfinished or an earlier backfill may be staged where only Spark can read it.
    planned = None if job.needs_spark_to_plan else job.planned(None)
    if planned is not None:
        job.check_target(planned)
    with job.executor(planned) as executor:
        if planned is None:
            planned = job.planned(executor)
            job.check_target(planned)
        job.prepare_tables(planned, executor)
        with display_for_terminal(SystemClock()) as display:
            job.compute(planned, executor, display)
    job.show_end()


class BackfillJob:
    """One backfill whose options have been parsed."""

    def __init__(
        self,
        options: BackfillOptions,
        program: Program,
        sources: Mapping[str, Source | DataFrameSource],
        until: Until,
        boundary: int | None,
        hand_over: HandOver,
        emit: Emit,
        outputs: Collection[str],
    ) -> None:
        self._options = options
        self._program = program
        self._sources = sources
        self._tables = tables_among(sources)
        self._until = until
        self._boundary = boundary
        self._hand_over = hand_over
        self._emit = emit
        self._outputs = outputs
        self._result: BackfillResult | None = None
        self._emitted: Mapping[str, int] = {}
        self._handed_over: HandedOver | None = None
        self._staging = options.staging or str(DEFAULT_STAGING / program.config.application_id)
        #: The staging folder, as messages show it.
        self.place = shown(self._staging)

    # Plan and checks

    @cached_property
    def _master(self) -> Master | None:
        """Where the backfill runs; None: the plan decides."""
        return before_the_plan(self._options, self._tables, self._emit.spark_tables, self._staging)

    @property
    def needs_spark_to_plan(self) -> bool:
        """Whether only Spark can read a source, or the staging folder of the earlier backfill, or of the one that is
        resumed."""
        options = self._options
        read_by_spark = bool(self._tables) or options.previous is not None or options.resume
        return self._master is not None and self._master.is_spark and read_by_spark

    def look(self) -> None:
        """For --dry-run: show the plan, and the error that a run would raise now."""
        if self.needs_spark_to_plan:
            with self.executor(None) as executor:
                planned = self.planned(executor)
        else:
            planned = self.planned(None)
            self._note_master(self._master or for_plan(planned))
        from pystreams.backfill.plan.notes import PlanNote, notes

        refused: StreamsError | None = None
        try:
            self.check_target(planned)
        except StreamsError as error:
            refused = error
        writes, cut = self._writes(planned), planned.manifest
        found = [PlanNote(*remark) for remark in cut.remarks] + notes(
            planned.plan, planned.loaded, cut.folded
        )
        if not self._options.json:
            show_plan(planned, writes, found)
        if refused is not None:
            note(f"The backfill would be refused now: {refused}")
        note("Nothing was done: this is a dry run.")
        if self._options.json:
            why = None if refused is None else str(refused)
            print_json(plan_json(planned, self.place, writes, found, why))

    def planned(self, executor: Executor | None) -> Planned:
        """The plan, with a new cut, or with the cut of the backfill that is resumed."""
        from pystreams.backfill.api import plan_backfill

        options = self._options
        given: dict[str, Any] = {"exact_updates": options.exact_updates}
        if options.commit_records is not None:
            given["commit_records"] = options.commit_records
        planned = plan_backfill(
            self._program.for_workers,
            sources=self._sources,
            executor=executor,
            until=self._until,
            boundary=self._boundary,
            settings=self._program.settings,
            partitions=self._partitions,
            previous=options.previous,
            resume=self._staging if options.resume else None,
            **given,
        )
        if options.resume:
            self._note_resumed(planned)
        return planned

    def _note_resumed(self, planned: Planned) -> None:
        if planned.begun:
            until = "" if self._until is None else "; --until is ignored"
            cut = show_time(planned.manifest.cut_time_ms)
            note(f"Continuing the backfill in {self.place}, whose cut is {cut}{until}.")
        else:
            note(f"There is no backfill in {self.place} yet: starting a new one.")

    def check_staging(self) -> None:
        """Raises ``StateError`` if a folder of this machine holds a backfill (the executor checks other places), and
        ``ConfigError`` if it is the staging folder of the earlier backfill, or a URL without Spark."""
        from pystreams.backfill.api import check_places
        from pystreams.backfill.compute.inline import InlineExecutor
        from pystreams.backfill.staging.local import LocalStaging

        check_places(self._staging, self._options.previous)
        if self._master is None or not self._master.is_spark:
            InlineExecutor().staging(self._staging)
        known = self._options.resume or self._options.overwrite
        if known or is_url(self._staging):
            return
        if LocalStaging(self._staging).read_manifest() is not None:
            raise StateError(
                f"{self.place} holds a backfill already",
                hint="continue it with --resume, replace it with --overwrite, or use another folder: "
                "--staging PATH",
            )

    def check_target(self, planned: Planned) -> None:
        """Raise the errors of the hand-over now, and not after hours of work."""
        to, config = self._hand_over.to, self._program.config
        if to == "snapshot":
            from pystreams.backfill.snapshot.writing import check_folder

            backfill_id = planned.manifest.backfill_id if planned.begun else None
            folder = self._hand_over.snapshot(self._staging)
            check_folder(folder, backfill_id, replace_other=not self._hand_over.folder)
        if self._emit.to == "parquet":
            from pystreams.backfill.sources.folder import Folder

            Folder(self._emit.folder).exists("")
        if self._emit.tables:
            from pystreams.backfill.handover.emit_to_tables import check_tables

            check_tables(planned, self._emit.tables)
        to_log, to_topics = to in {"kafka", "embedded"}, self._emit.to == "topic"
        if not to_log and not to_topics:
            return
        from pystreams.backfill.handover.checks import check_target, require_no_members
        from pystreams.backfill.handover.emit import check_emit
        from pystreams.backfill.handover.retention import warn_of_outputs

        with open_target(to, config) as broker, closing(broker.admin()) as admin:
            if to_log:
                check_target(planned, broker)
            else:
                require_no_members(admin, config.application_id, broker.description)
            if to_topics:
                outputs = check_emit(planned, broker, admin)
                warn_of_outputs(planned, outputs, broker, SystemClock().now_ms())

    def prepare_tables(self, planned: Planned, executor: Executor | None) -> None:
        """Create the tables that Spark writes, before anything is computed. Raises ``ConfigError`` for those that
        cannot take the records."""
        if self._emit.spark_tables:
            from pystreams.backfill.handover.emit_to_tables import prepare_tables

            assert executor is not None, "only Spark was chosen"
            prepare_tables(planned, self._emit.spark_tables, executor)

    # Work

    @contextmanager
    def executor(self, planned: Planned | None) -> Iterator[Executor | None]:
        """The executor of a plan. None: this process. ``planned`` is None if only Spark can make the plan."""
        options, master, name = self._options, self._master, self._program.config.application_id
        if master is None:
            assert planned is not None, "without Spark the plan comes first"
            master = for_plan(planned)
        log = None if options.verbose else DEFAULT_STAGING / f"{name}.spark.log"
        conf = parse_pairs(options.spark_conf, CONF_EXAMPLE)
        if not master.is_spark:
            self._note_master(master)
        with open_executor(master, f"pystreams backfill {name}", conf, options.py_files, log) as executor:
            yield executor

    def _note_master(self, master: Master) -> None:
        """Say what ``auto`` has chosen."""
        if master.why:
            note(f"Chosen: --master {master.name}, because {master.why}.")

    @cached_property
    def _partitions(self) -> Mapping[str, int]:
        """The numbers of partitions of output topics on the target log: they decide the partition of each record. So do
        those of topics whose history comes from a table, which does not contain them."""
        config = self._program.config
        if not opens_kafka(self._hand_over.to, config) and not config.embedded_log.exists():
            return {}
        with open_target(self._hand_over.to, config) as broker, closing(broker.admin()) as admin:
            found = admin.describe_topics()
        unknown = {
            *self._outputs,
            *(name for name, table in self._tables.items() if table.partitions is None),
        }
        return {name: found[name].partitions for name in sorted(unknown) if name in found}

    def compute(self, planned: Planned, executor: Executor | None, display: Display) -> None:
        """Compute all slices, then write the results to their targets."""
        from pystreams.backfill.compute.driver import run
        from pystreams.backfill.compute.inline import InlineExecutor

        if executor is not None:
            # The plan may have been made before the log existed.
            application = executor.application(self._program.for_workers, self._program.settings)
            planned = replace(planned, application=application)
        display.expect(titles(planned.plan))
        display.step("beginning")
        self._result = run(
            planned,
            executor or InlineExecutor(),
            self._staging,
            resume=self._options.resume,
            overwrite=self._options.overwrite,
            progress=display.update,
        )
        self._emit_records(self._result, display)
        self._hand_over_state(self._result, display)

    def _emit_records(self, result: BackfillResult, display: Display) -> None:
        """Write records to tables and files, or to topics of a log without a hand-over: a hand-over writes them
        itself."""
        from pystreams.backfill.handover.emit import emit

        if self._emit.tables:
            display.step(f"writing records for {', '.join(self._emit.tables)} to tables")
            self._emitted = emit(result, to=self._emit.tables)
        within = self._emit.to == "topic" and self._hand_over.to in {"kafka", "embedded"}
        if self._emit.to == "none" or within:
            return
        display.step(f"writing records to {self._emit.place}")
        if self._emit.to == "parquet":
            self._emitted = {**self._emitted, **emit(result, to=self._emit.folder)}
            return
        with open_target(self._hand_over.to, self._program.config) as broker:
            self._emitted = {**self._emitted, **emit(result, to=broker)}

    def _hand_over_state(self, result: BackfillResult, display: Display) -> None:
        config, to = self._program.config, self._hand_over
        if to.to == "none":
            return
        display.step(f"handing over to {to.place(config, self._staging)}")
        if to.to == "snapshot":
            from pystreams.backfill.snapshot import write_snapshot

            # The folder below the staging folder belongs to this backfill, so an older snapshot in it is replaced.
            write_snapshot(result, to.snapshot(self._staging), replace_other=not to.folder)
            return
        from pystreams.backfill.handover.hand_over import hand_over

        with open_target(to.to, config) as broker:
            self._handed_over = hand_over(result, broker, emit=self._emit.to == "topic")
        if self._handed_over.emitted is not None:
            self._emitted = {**self._emitted, **self._handed_over.emitted}

    # Report

    def _writes(self, planned: Planned) -> list[list[str]]:
        """The outputs of the backfill, each with its place."""
        config, hand_over, plan = self._program.config, self._hand_over, planned.plan
        rows = [["slices, in Parquet", self.place]]
        if self._emit.to != "none":
            place = shown(self._emit.folder) or log_for(hand_over.to, config)
            sinks = sorted({topic for one in plan.slices for topic in one.sinks})
            rows += [[f"records for {topic}", place] for topic in sinks]
        rows += [[f"records for {topic}", shown_table(table)] for topic, table in self._emit.tables.items()]
        if hand_over.to == "none":
            return rows
        place = hand_over.place(config, self._staging)
        stores = [store for one in plan.slices if one.final for store in one.stores.items()]
        versioned = {spec.name for spec in planned.loaded.built.stores if spec.kind == "versioned"}
        for name, changelog in stores:
            if changelog:
                anew = ", created again" if name in versioned and hand_over.to != "snapshot" else ""
                rows.append([f"store {name}, changelog {changelog}{anew}", place])
        rows.append([f"offsets of group {plan.application_id}", place])
        if hand_over.to != "snapshot":
            from pystreams.take_over.hand_over_record import manifest_topic

            rows.append([f"record of the hand-over, topic {manifest_topic(plan.application_id)}", place])
        return rows

    def show_end(self) -> None:
        """Print the report, and what to do next."""
        result = self._result
        assert result is not None, "it was computed"
        emitted, handed_over = self._emitted, self._handed_over
        if not self._options.json:
            show_report(result.plan, result.manifest, emitted, handed_over)
        note_boundaries(result.manifest)
        note_left_out(result.manifest)
        note_joins_in_vain(result.manifest)
        self._note_next(result)
        if self._options.json:
            print_json(report_json(result.plan, result.manifest, self.place, emitted, handed_over))

    def _note_next(self, result: BackfillResult) -> None:
        """Print what can be done with the result."""
        name = self._program.config.application_id
        match self._hand_over.to:
            case "kafka" | "embedded":
                before = self._handed_over is not None and self._handed_over.complete_before
                place = self._hand_over.place(self._program.config, self._staging)
                note_handed_over(place, name, self._options.application, before=before)
            case "snapshot":
                folder = self._hand_over.folder or self._hand_over.snapshot(self._staging)
                note(
                    f"Written to {folder}. To hand it over: pystreams backfill {self._options.application}"
                    f" --from-snapshot {folder} --hand-over kafka or embedded."
                )
            case "none" if result.manifest.approximate:
                note(f"Computed, and staged in {self.place}.")
            case "none":
                note(
                    f"Computed, and staged in {self.place}. To hand it over to the live application: the same"
                    " command with --resume --hand-over kafka, embedded or snapshot."
                )
