"""One verification from the command line: finds the moment, computes history up to it, compares, and reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from pystreams.backfill.display.slice_meter import titles
from pystreams.backfill.locations import shown
from pystreams.cli.application.settings import parse_pairs
from pystreams.cli.application.topics import input_topics
from pystreams.cli.commands.backfill.inputs import Places, open_sources, parse_boundary, parse_sources
from pystreams.cli.commands.backfill.program import Program, load_program
from pystreams.cli.commands.backfill.progress import display_for_terminal
from pystreams.cli.commands.verify.report import note_outcome, nothing_compared, show_verified
from pystreams.cli.commands.verify.report_json import verified_json
from pystreams.cli.connection import open_broker_of
from pystreams.cli.masters import Master, open_executor
from pystreams.cli.options import CONF_EXAMPLE
from pystreams.cli.spark import require_packages
from pystreams.cli.terminal.console import print_json
from pystreams.cli.terminal.exits import Exit
from pystreams.cli.terminal.stopping import stopping
from pystreams.clock import SystemClock
from pystreams.dsl.builder import build_topology
from pystreams.errors import StateError
from pystreams.folders import make_folder

if TYPE_CHECKING:
    from pystreams.backfill.compute.backfill_result import BackfillResult
    from pystreams.backfill.compute.executor import Executor
    from pystreams.backfill.sources import DataFrameSource, Source
    from pystreams.backfill.verification.outcome import Verified
    from pystreams.broker.port import Broker

#: Where temporary folders for history are made, and the log of Spark.
FOLDER = Path(".pystreams")


@dataclass(frozen=True)
class VerifyOptions:
    """The options; see ``command.verify``."""

    application: str
    sources: Sequence[str]
    boundary: str | None
    limit: int
    json: bool
    wait_ms: float
    master: str
    spark_conf: Sequence[str]
    py_files: Sequence[str]
    staging: str | None
    verbose: bool
    flags: Mapping[str, Any]
    settings: Sequence[str]


def run_verify(options: VerifyOptions) -> None:
    """Verify what the options describe, and end with the exit code for the outcome. Options are checked before Spark is
    started. Raises ``StreamsError``."""
    from pystreams.backfill.verification.history import require_offsets

    texts = parse_sources(options.sources)
    boundary = None if options.boundary is None else parse_boundary(options.boundary)
    conf = parse_pairs(options.spark_conf, CONF_EXAMPLE)
    master = Master(options.master)
    master.check({"--conf": conf, "--py-files": options.py_files})
    require_packages(spark=master.is_spark, connect=master.is_connect)
    program = load_program(options.application, options.flags, options.settings)
    config = program.config
    places = Places(
        config.embedded_log,
        config.bootstrap_servers,
        config.client_settings,
        approximate=False,
        log_after_tables=boundary is not None,
        reads_committed=config.processing_guarantee == "exactly_once_v2",
    )
    built = build_topology(program.loaded, config)
    sources = open_sources(texts, sorted({*input_topics(built), *built.global_topics}), places)
    require_offsets(sources, boundary)
    log = None if options.verbose else FOLDER / f"verify-{config.application_id}.spark.log"
    name = f"pystreams verify {config.application_id}"
    try:
        with (
            stopping("Stopped. Nothing was changed."),
            open_broker_of(config) as broker,
            open_executor(
                master, name, conf, options.py_files, log, hint="correct that, and verify again"
            ) as executor,
        ):
            result, verified = _verified(options, program, sources, boundary, broker, executor)
    except OSError as error:
        raise StateError(
            "a file or folder cannot be used",
            where=str(error.filename or ""),
            why=shown(error.strerror or str(error)),
            hint="correct that, and verify again",
        ) from None
    if not options.json:
        show_verified(result, verified)
    note_outcome(verified)
    if options.json:
        print_json(verified_json(result, verified))
    if nothing_compared(verified):
        raise typer.Exit(Exit.BROKER)
    raise typer.Exit(Exit.OK if verified.equal else Exit.FAILED)


def _verified(
    options: VerifyOptions,
    program: Program,
    sources: Mapping[str, Source | DataFrameSource],
    boundary: int | None,
    broker: Broker,
    executor: Executor | None,
) -> tuple[BackfillResult, Verified]:
    """The result of history, and its comparison with the live stores."""
    from pystreams.backfill.compute.driver import run
    from pystreams.backfill.compute.inline import InlineExecutor
    from pystreams.backfill.verification.verifying import compare, plan_verification, staging_folder

    executor = executor or InlineExecutor()
    clock = SystemClock()
    with display_for_terminal(clock) as display:
        display.step(f"reading what {program.config.application_id} has committed")
        found = plan_verification(
            program.for_workers,
            broker,
            sources=sources,
            boundary=boundary,
            executor=executor,
            settings=program.settings,
            wait_ms=options.wait_ms,
        )
        display.expect(titles(found.planned.plan))
        make_folder(FOLDER)
        with staging_folder(executor, options.staging, str(FOLDER)) as folder:
            result = run(found.planned, executor, folder, progress=display.update)
            verified = compare(
                result,
                broker,
                found.cut,
                limit=options.limit,
                on_store=lambda store: display.step(f"comparing store {store}"),
            )
            return result, verified
