"""``pystreams run``: runs an application until a signal stops it, or until it has caught up."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pystreams.cli.garbage import leave_out_what_stays
from pystreams.cli.options import (
    ApplicationArgument,
    ApplicationIdOption,
    BootstrapServersOption,
    EmbeddedLogOption,
    HttpCaOption,
    HttpCertificateOption,
    HttpClientCaOption,
    HttpKeyOption,
    HttpOpenOption,
    HttpOption,
    HttpTokenOption,
    LogFormatOption,
    OtelOption,
    QuietOption,
    ReadyLagOption,
    SetOption,
    StateDirOption,
    flags_of_place,
)
from pystreams.cli.terminal.last_line import LastCounts, log_last_line
from pystreams.cli.terminal.logs import LogFormat, LogOptions, command_log, log_to_stderr
from pystreams.cli.terminal.progress import Display, Standbys, display_for
from pystreams.clock import SystemClock
from pystreams.errors import ConfigError
from pystreams.meter import Meter
from pystreams.plural import plural

if TYPE_CHECKING:
    from pystreams.cli.commands.workers.channel import Job
    from pystreams.cli.watching import WatchOptions
    from pystreams.runtime.streams import Streams
    from pystreams.runtime.threads.progress import Progress
    from pystreams.serving.stores.asking import Answerer


#: More workers than any machine runs well: the limit protects the machine from a typing error.
WORKERS_MAX = 256


def run(
    context: typer.Context,
    application: ApplicationArgument,
    until_caught_up: Annotated[
        bool,
        typer.Option("--until-caught-up", help="Stop as soon as all records in the log have been processed."),
    ] = False,
    threads: Annotated[
        int | None,
        typer.Option(
            "--threads",
            min=1,
            envvar="PYSTREAMS_NUM_STREAM_THREADS",
            help="Stream threads of each process. Default: 1",
            show_default=False,
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            min=1,
            max=WORKERS_MAX,
            envvar="PYSTREAMS_WORKERS",
            help="Number of worker processes that share the tasks; a worker that dies is started again. "
            "Default: only this process",
            show_default=False,
        ),
    ] = None,
    allow_expired: Annotated[
        bool | None,
        typer.Option(
            "--allow-expired",
            help="Start although the retention of output topics and changelogs would delete records as old "
            "as the input's.",
            show_default=False,
        ),
    ] = None,
    create_topics: Annotated[
        bool,
        typer.Option(
            "--create-topics", help="First create missing input and output topics. For development."
        ),
    ] = False,
    partitions: Annotated[
        int | None,
        typer.Option(
            "--partitions",
            min=1,
            help="Partitions of the topics that --create-topics creates; topics that are joined or merged "
            "get the same number. Default: 1",
            show_default=False,
        ),
    ] = None,
    accept_loss: Annotated[
        list[str] | None,
        typer.Option(
            "--accept-loss",
            metavar="STORE",
            help="Start although the changed program loses the content of this store. May be repeated.",
            show_default=False,
        ),
    ] = None,
    http: HttpOption = None,
    http_token_file: HttpTokenOption = None,
    http_open: HttpOpenOption = False,
    http_cert: HttpCertificateOption = None,
    http_key: HttpKeyOption = None,
    http_ca: HttpCaOption = None,
    http_client_ca: HttpClientCaOption = None,
    ready_lag: ReadyLagOption = None,
    otel: OtelOption = False,
    profile: Annotated[
        bool,
        typer.Option(
            "--profile",
            help="Show at the end where the time went: for each step its functions, store, cache, serdes; and poll, "
            "decode, commit, idle.",
        ),
    ] = False,
    picture: Annotated[
        Path | None,
        typer.Option(
            "--flame-graph",
            metavar="FILE.svg",
            help="Write where the time went to this file, as a picture for a browser.",
            show_default=False,
        ),
    ] = None,
    reload: Annotated[
        bool,
        typer.Option(
            "--reload",
            help="Start again whenever a Python file below the working directory changes. For development.",
        ),
    ] = False,
    show_config: Annotated[
        bool, typer.Option("--show-config", help="Print all settings in force, and do not run.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Also log the work of threads and tasks.")
    ] = False,
    quiet: QuietOption = False,
    log_format: LogFormatOption = LogFormat.TEXT,
    application_id: ApplicationIdOption = None,
    setting: SetOption = None,
    state_dir: StateDirOption = None,
    embedded_log: EmbeddedLogOption = None,
    bootstrap_servers: BootstrapServersOption = None,
) -> None:
    """Run an application until Ctrl-C, or until it has caught up.

    With --workers several processes share its partitions; start it on other
    machines, too, to share them further. Ctrl-C and SIGTERM commit and stop;
    a second Ctrl-C stops at once, and nothing is lost.

    [bold]pystreams run apps.wordcount[/]

    [bold]pystreams run apps.wordcount --until-caught-up -s commit_interval_ms=1000[/]

    [bold]pystreams run apps.wordcount --workers 4[/]

    [bold]pystreams run apps.wordcount --create-topics --partitions 2[/]

    [bold]pystreams run apps.wordcount --http 127.0.0.1:8080[/]

    [bold]pystreams run apps.wordcount --otel[/]

    [bold]pystreams run apps.wordcount --until-caught-up --profile[/]

    [bold]pystreams run apps.wordcount --create-topics --reload[/]
    """
    from pystreams.cli.profiling import ProfileOptions, profiled
    from pystreams.cli.telemetry import telemetry
    from pystreams.cli.watching import HttpOptions, WatchOptions, announce, shown

    logs = LogOptions(verbose, quiet, log_format)
    log_to_stderr(logs)
    if partitions is not None and not create_topics:
        raise ConfigError(
            "--partitions is for --create-topics", hint="add --create-topics, or leave --partitions out"
        )
    flags: dict[str, Any] = {
        **flags_of_place(application_id, state_dir, embedded_log, bootstrap_servers),
        "num_stream_threads": threads,
        "allow_expired": allow_expired,
        "accept_loss": ",".join(accept_loss) if accept_loss else None,
    }
    http_options = HttpOptions(http_token_file, http_open, http_cert, http_key, http_ca, http_client_ca)
    if http is None:
        http_options = http_options.without(_from_environment(context))
    watch = WatchOptions.parse(http, ready_lag, http_options)
    profile_options = ProfileOptions(profile, picture)
    profile_options.check_workers(workers)
    _check_extras(workers, until_caught_up=until_caught_up, otel=otel, reload=reload)
    creates = partial(_create_topics, application, setting, flags, partitions or 1) if create_topics else None
    if workers is not None and not show_config:
        from pystreams.cli.commands.workers.channel import Job

        if creates is not None:
            creates()
        job = Job(
            application, 0, flags, setting or [], until_caught_up, logs, watched=http is not None, otel=otel
        )
        raise typer.Exit(_run_workers(job, workers, watch))
    if show_config:
        _show_config(application, setting, flags)
        return

    from pystreams.cli.stacks import log_stacks, on_stacks_request
    from pystreams.serving.watched import WatchedClient

    def run_here(stop: threading.Event | None = None, loaded: Callable[[str], None] | None = None) -> None:
        if creates is not None:
            creates()
        streams = _load(application, setting, flags, loaded)
        watched = WatchedClient(streams, watch.ready_lag)
        with (
            on_stacks_request(partial(log_stacks, streams)),
            shown(watched, lambda: _stores(streams), watch) as endpoint,
            profiled(streams, profile_options),
            telemetry(streams, wanted=otel),
        ):
            announce(streams, endpoint)
            run_streams(streams, until_caught_up=until_caught_up, logs=logs, stop=stop)

    if reload:
        from pystreams.cli.commands.reloading import run_reloading

        run_reloading(application, setting or [], flags, run_here)
    else:
        run_here()


def _check_extras(workers: int | None, *, until_caught_up: bool, otel: bool, reload: bool) -> None:
    """Raises ``ConfigError`` for what does not go together, and for packages that are not installed."""
    if otel:
        from pystreams.cli.telemetry import require_otel

        require_otel()
    if reload:
        from pystreams.cli.commands.reloading import check_reload

        check_reload(workers, until_caught_up=until_caught_up)


def _from_environment(context: typer.Context) -> frozenset[str]:
    """The parameters whose values come from the environment."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return frozenset(
        name for name, source in sources.items() if source is not None and source.name == "ENVIRONMENT"
    )


def _show_config(application: str, setting: list[str] | None, flags: dict[str, Any]) -> None:
    from pystreams.cli.application.loading import load_application
    from pystreams.cli.application.settings import show_settings

    show_settings(load_application(application), setting, **flags)


def _run_workers(job: Job, workers: int, watch: WatchOptions) -> int:
    """The exit code of a run with this number of workers. All have the same job, each with its own number."""
    import msgspec

    from pystreams.cli.commands.workers.supervisor import run_workers
    from pystreams.cli.terminal.journal import is_journal

    logs = replace(job.logs, journal=is_journal())
    jobs = [
        msgspec.structs.replace(job, number=number, logs=replace(logs, worker=number))
        for number in range(1, workers + 1)
    ]
    return run_workers(jobs, until_caught_up=job.until_caught_up, logs=job.logs, watch=watch)


def _load(
    application: str, setting: list[str] | None, flags: dict[str, Any], loaded: Callable[[str], None] | None
) -> Streams:
    """The client of the application; ``loaded`` gets its description."""
    from pystreams.cli.application.loading import load_application
    from pystreams.cli.application.settings import settings_of
    from pystreams.cli.commands.describe import describe_json
    from pystreams.runtime.streams import Streams

    app = load_application(application)
    streams = Streams(app, settings_of(app, setting, **flags))
    if loaded is not None:
        loaded(describe_json(app, setting))
    return streams


def _stores(streams: Streams) -> Answerer:
    from pystreams.serving.stores.local import LocalStores

    return LocalStores(streams)


def _create_topics(
    application: str, setting: list[str] | None, flags: dict[str, Any], partitions: int
) -> None:
    """Create the inputs and outputs that are missing, and say which. Raises ``TopologyError``, ``BrokerError``."""
    from pystreams.broker.connecting import open_broker
    from pystreams.cli.application.loading import load_application
    from pystreams.cli.application.settings import settings_of
    from pystreams.dsl.builder import build_topology
    from pystreams.topics.users_topics import missing_topics, unknown_topics

    app = load_application(application)
    config = settings_of(app, setting, **flags)
    built = build_topology(app, config)
    with closing(open_broker(config, SystemClock())) as broker, closing(broker.admin()) as admin:
        missing = missing_topics(built, config, admin.partition_counts(), partitions)
        admin.create_topics(missing)
    by_width: dict[int, list[str]] = defaultdict(list)
    for topic in missing:
        by_width[topic.partitions].append(topic.name)
    for width, names in sorted(by_width.items()):
        command_log.info("Created %s with %d %s.", ", ".join(names), width, plural(width, "partition"))
    if missing:
        command_log.info(
            "--create-topics is for development: in production, choose the number of partitions and the "
            "retention of a topic before it gets records (pystreams topics create)."
        )
    for unknown in unknown_topics(built):
        command_log.info("Not created, because their names are only known at run time: %s.", unknown)


def run_streams(
    streams: Streams, *, until_caught_up: bool, logs: LogOptions, stop: threading.Event | None = None
) -> None:
    """Run until a signal or ``stop``, until it has caught up, or until a failure, which is raised."""
    leave_out_what_stays()
    clock = SystemClock()
    meter = Meter(clock)
    failed = True
    try:
        with display_for(logs, meter, clock) as display:
            try:
                streams.run(
                    until_caught_up=until_caught_up,
                    on_progress=lambda now: _show(display, streams, now),
                    stop=stop,
                )
            except KeyboardInterrupt:
                # A second Ctrl-C. After the last commit there is no work left that it could interrupt.
                if streams.state.value != "not_running":
                    raise
        failed = False
    finally:
        progress = streams.progress()
        meter.update(progress.source_records)
        # Print the summary before the error, which has the details. A run that has not begun has no summary.
        if not failed or progress.records or streams.left_out:
            counts = LastCounts(
                progress.internal_records, streams.left_out, streams.late_records, streams.joins
            )
            log_last_line(meter, counts, failed=failed)


def _show(display: Display, streams: Streams, progress: Progress) -> None:
    state = "restoring" if progress.restoring else streams.state.value.replace("_", " ")
    has_tasks = any(thread.tasks for thread in progress.threads)
    lag = progress.lag if has_tasks else None
    standbys = Standbys(len(progress.standbys), progress.standby_lag)
    display.update(state, progress.source_records, lag, streams.left_out, standbys, progress.internal_records)
