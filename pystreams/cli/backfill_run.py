"""A backfill whose options are understood: planned, checked, computed, left where it is wanted, and told."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pystreams.backfill.places import is_url, shown
from pystreams.cli.backfill_outputs import Emit, HandOver, log_for, open_target
from pystreams.cli.backfill_progress import Display
from pystreams.cli.backfill_report import show_plan, show_report, tell_dropped, tell_handed_over, titles
from pystreams.cli.backfill_setup import NO_SPARK, Program
from pystreams.cli.console import note
from pystreams.cli.options import CONF_EXAMPLE
from pystreams.cli.settings import parse_pairs
from pystreams.clock import SystemClock
from pystreams.errors import StateError, StreamsError
from pystreams.times import show_time

if TYPE_CHECKING:
    from pystreams.backfill.cut import Until
    from pystreams.backfill.executor import Executor
    from pystreams.backfill.handover import HandedOver
    from pystreams.backfill.result import BackfillResult
    from pystreams.backfill.run import Planned
    from pystreams.backfill.sources import Source
    from pystreams.cli.backfill_job import BackfillJob

#: Where backfills are staged unless somebody says where.
DEFAULT_STAGING = Path(".pystreams") / "backfill"


class BackfillRun:
    """See the module."""

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
        self._staging = job.staging or str(DEFAULT_STAGING / program.config.application_id)
        #: The staging folder, for people.
        self.place = shown(self._staging)

    # Looking

    @property
    def needs_spark_to_plan(self) -> bool:
        """An earlier backfill, or one that was begun, may lie where only Spark can read it."""
        return self._job.master != NO_SPARK and (self._job.previous is not None or self._job.resume)

    def look(self) -> None:
        """For --dry-run: the plan, and what is known to be in its way."""
        if self.needs_spark_to_plan:
            with self.executor() as executor:
                planned = self.planned(executor)
        else:
            planned = self.planned(None)
        from pystreams.backfill.notes import notes

        show_plan(planned, self._writes(planned), notes(planned.plan, planned.loaded))
        try:
            self.check_target(planned)
        except StreamsError as error:
            note(f"As things are now, it would be refused: {error}")
        note("Nothing was done: this is a dry run.")

    def planned(self, executor: Executor | None) -> Planned:
        """The plan, and the cut: as of now, or that of the backfill that is resumed."""
        from pystreams.backfill.api import plan_backfill

        job = self._job
        given: dict[str, Any] = {}
        if job.commit_records is not None:
            given["commit_records"] = job.commit_records
        planned = plan_backfill(
            self._program.for_workers,
            sources=self._source,
            executor=executor,
            until=self._until,
            settings=self._program.settings,
            partitions=self._partitions,
            previous=job.previous,
            resume=self._staging if job.resume else None,
            **given,
        )
        if job.resume:
            self._tell_resumed(planned)
        return planned

    def _tell_resumed(self, planned: Planned) -> None:
        if planned.begun:
            until = "" if self._until is None else "; --until does not count any more"
            cut = show_time(planned.manifest.cut_time_ms)
            note(f"Going on with the backfill in {self.place}, which was cut at {cut}{until}.")
        else:
            note(f"There is no backfill in {self.place} yet: it begins.")

    def check_staging(self) -> None:
        """Raises ``StateError`` if a folder of this machine holds a backfill (in other places the executor looks), and
        ``ConfigError`` if it is the one to go on from, or a URL without Spark."""
        from pystreams.backfill.api import check_places
        from pystreams.backfill.inline import InlineExecutor
        from pystreams.backfill.local_staging import LocalStaging

        check_places(self._staging, self._job.previous)
        if self._job.master == NO_SPARK:
            InlineExecutor().staging(self._staging)
        known = self._job.resume or self._job.overwrite
        if known or is_url(self._staging):
            return
        if LocalStaging(self._staging).read_manifest() is not None:
            raise StateError(
                f"{self.place} holds a backfill already",
                hint="go on with it: --resume; begin anew in its place: --overwrite; or use another: --staging PATH",
            )

    def check_target(self, planned: Planned) -> None:
        """Raises what leaving the result would: before hours of work."""
        to, config = self._hand_over.to, self._program.config
        if to == "snapshot":
            from pystreams.backfill.snapshot.writing import check_folder

            backfill_id = planned.manifest.backfill_id if planned.begun else None
            folder = self._hand_over.snapshot(self._staging)
            check_folder(folder, backfill_id, replace_other=not self._hand_over.folder)
        if self._emit.to == "parquet":
            from pystreams.backfill.sources.folder import Folder

            Folder(self._emit.folder).exists("")
        to_log, to_topics = to in {"kafka", "embedded"}, self._emit.to == "topic"
        if not to_log and not to_topics:
            return
        from pystreams.backfill.checks import check_target, require_no_members
        from pystreams.backfill.emitting import check_emit

        with open_target(to, config) as broker, closing(broker.admin()) as admin:
            if to_log:
                check_target(planned, broker)
            else:
                require_no_members(admin, config.application_id, broker.description)
            if to_topics:
                check_emit(planned, broker, admin, SystemClock())

    # Doing

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

    def compute(self, planned: Planned, executor: Executor | None, display: Display) -> None:
        """All slices, then what is to be left elsewhere."""
        from pystreams.backfill.inline import InlineExecutor
        from pystreams.backfill.run import run

        if executor is not None:
            # It may have been planned before there was one.
            application = executor.application(self._program.for_workers, self._program.settings)
            planned = replace(planned, application=application)
        display.expect(titles(planned.plan))
        display.step("beginning")
        self._result = run(
            planned,
            executor or InlineExecutor(),
            self._staging,
            resume=self._job.resume,
            overwrite=self._job.overwrite,
            progress=display.update,
        )
        self._emit_records(self._result, display)
        self._hand_over_state(self._result, display)

    def _emit_records(self, result: BackfillResult, display: Display) -> None:
        """To files, or to topics of a log that nothing is handed over to: a hand-over does it itself."""
        within = self._emit.to == "topic" and self._hand_over.to in {"kafka", "embedded"}
        if self._emit.to == "none" or within:
            return
        from pystreams.backfill.emitting import emit

        display.step(f"writing records to {self._emit.place}")
        if self._emit.to == "parquet":
            self._emitted = emit(result, to=self._emit.folder)
            return
        with open_target(self._hand_over.to, self._program.config) as broker:
            self._emitted = emit(result, to=broker)

    def _hand_over_state(self, result: BackfillResult, display: Display) -> None:
        config, to = self._program.config, self._hand_over
        if to.to == "none":
            return
        display.step(f"handing over to {to.place(config, self._staging)}")
        if to.to == "snapshot":
            from pystreams.backfill.snapshot import write_snapshot

            # The place below the staging folder is this backfill's, whatever was staged there before.
            write_snapshot(result, to.snapshot(self._staging), replace_other=not to.folder)
            return
        from pystreams.backfill.handover import hand_over

        with open_target(to.to, config) as broker:
            self._handed_over = hand_over(result, broker, emit=self._emit.to == "topic")
        if self._handed_over.emitted is not None:
            self._emitted = self._handed_over.emitted

    # Telling

    def _writes(self, planned: Planned) -> list[list[str]]:
        """What is written, and where."""
        config, hand_over, plan = self._program.config, self._hand_over, planned.plan
        rows = [["slices, in Parquet", self.place]]
        if self._emit.to != "none":
            place = shown(self._emit.folder) or log_for(hand_over.to, config)
            sinks = sorted({topic for one in plan.slices for topic in one.sinks})
            rows += [[f"records for {topic}", place] for topic in sinks]
        if hand_over.to == "none":
            return rows
        place = hand_over.place(config, self._staging)
        stores = [store for one in plan.slices if one.final for store in one.stores.items()]
        versioned = {spec.name for spec in planned.loaded.built.stores if spec.kind == "versioned"}
        for name, changelog in stores:
            if changelog:
                anew = ", made anew" if name in versioned and hand_over.to != "snapshot" else ""
                rows.append([f"store {name}, changelog {changelog}{anew}", place])
        rows.append([f"offsets of group {plan.application_id}", place])
        if hand_over.to != "snapshot":
            from pystreams.take_over.hand_over_record import manifest_topic

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
                place = self._hand_over.place(self._program.config, self._staging)
                tell_handed_over(place, name, self._job.application, before=before)
            case "snapshot":
                folder = self._hand_over.folder or self._hand_over.snapshot(self._staging)
                note(
                    f"Written to {folder}. To go on from it: pystreams backfill {self._job.application}"
                    f" --from-snapshot {folder} --hand-over kafka or embedded."
                )
            case "none" if self._job.approximate:
                note(f"Computed, and staged in {self.place}.")
            case "none":
                note(
                    f"Computed, and staged in {self.place}. To hand it over to the live application: the same"
                    " command with --resume --hand-over kafka, embedded or snapshot."
                )
