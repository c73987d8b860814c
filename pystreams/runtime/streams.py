"""The client runs a topology in stream threads of this process, until it is closed.

    streams = Streams(app)                     # or Streams(topology, StreamsConfig.of(application_id="wordcount"))
    streams.start()
    ...
    streams.close()

Source: org.apache.kafka.streams.KafkaStreams.
"""

from __future__ import annotations

import logging
import math
import os
import threading
from collections.abc import Callable, Collection, Sequence
from datetime import timedelta

from pystreams.broker.connecting import open_broker
from pystreams.broker.port import Broker
from pystreams.clock import Clock, Deadline, SystemClock
from pystreams.config import StreamsConfig, settings_from_environment
from pystreams.dsl.builder import Buildable, build_topology, own_config
from pystreams.engine.failures.lateness import LateRecords
from pystreams.engine.failures.left_out import Kind, LeftOutRecord
from pystreams.engine.failures.unmatched import Unmatched
from pystreams.engine.tracing import Tracing
from pystreams.errors import BrokerError, ConfigError, StateError, StreamsError
from pystreams.ids import TaskId
from pystreams.metrics import Metrics, Sample, names
from pystreams.runtime.client_state import CLIENT_SUCCESSORS, ClientState
from pystreams.runtime.group.application_status import ApplicationStatus, application_status
from pystreams.runtime.group.membership_data import Places
from pystreams.runtime.health import Health, health_of
from pystreams.runtime.queries.answers import Demands, Freshness
from pystreams.runtime.queries.global_queries import local_store
from pystreams.runtime.queries.placing import KeyPartitioner
from pystreams.runtime.queries.position import Position
from pystreams.runtime.queries.store_queries import LocalStore
from pystreams.runtime.restoring.restore_listener import RestoreListener
from pystreams.runtime.run_client import run_client
from pystreams.runtime.startup.client_start import prepare
from pystreams.runtime.tasks.client_context import ClientContext
from pystreams.runtime.tasks.store_metrics import STORE_NAMES
from pystreams.runtime.threads.activity import Activity
from pystreams.runtime.threads.global_thread import GlobalStores
from pystreams.runtime.threads.progress import Progress, ThreadProgress
from pystreams.runtime.threads.progress_metrics import thread_samples
from pystreams.runtime.threads.stream_thread import StreamThread
from pystreams.runtime.threads.thread_end import asked_to_stop
from pystreams.runtime.threads.thread_state import ThreadState
from pystreams.runtime.uncaught import (
    UncaughtExceptionHandler,
    UncaughtExceptionResponse,
    response_to,
    shut_down_client,
)
from pystreams.topology.built import BuiltTopology
from pystreams.topology.topology import Topology
from pystreams.transitions import check_transition

log = logging.getLogger(__name__)

#: Called with the new and the old state, in the thread that changed the state.
StateListener = Callable[[ClientState, ClientState], None]

_GOING = frozenset({ClientState.REBALANCING, ClientState.RUNNING})
_ENDED = frozenset({ClientState.NOT_RUNNING, ClientState.ERROR})
#: States as numbers, as in Kafka Streams.
_STATES = tuple(ClientState)
_ANSWER_TIMEOUT_S = 30.0
#: The interval at which ``wait_for`` checks its condition.
_CHECK_S = 0.1
#: Limits the wait for a state listener that itself waits for the caller of ``close``.
_LISTENER_TIMEOUT_S = 10.0


class Streams:
    """One application in this process. All methods may be called from any thread."""

    def __init__(
        self,
        application: Topology | Buildable,
        config: StreamsConfig | None = None,
        broker: Broker | None = None,
        *,
        clock: Clock | None = None,
        worker: int | None = None,
    ) -> None:
        """``application`` is an ``App`` (which brings its configuration), a ``StreamsBuilder`` or a ``Topology``.

        The environment (``PYSTREAMS_...``) overrides an ``App``'s own configuration; ``config`` is used as it is.
        Without ``broker`` the log of the configuration is used. ``worker`` numbers the clients that share a state
        directory, and is part of their threads' names. If another client has the number, the next free one is used. It
        is given by a supervisor that starts the client again if its process dies.

        Raises ``TopologyError``, ``ConfigError``.
        """
        own = own_config(application)
        if config is None and own is not None:
            config = own.override(settings_from_environment(os.environ))
        if config is None:
            raise ConfigError(
                "a topology alone does not say how to run it",
                hint='give a configuration: Streams(topology, StreamsConfig.of(application_id="..."))',
            )
        self.config: StreamsConfig = config
        self._clock = SystemClock() if clock is None else clock
        self.metrics = Metrics(self._clock)
        self.metrics.attach(self._progress_samples)
        self.metrics.attach(self._store_samples, STORE_NAMES)
        self.metrics.attach(self._client_samples)
        # Created at the start with 0: an alert on its growth would miss the first failure if it began with 1.
        self.metrics.counter(names.FAILED_STREAM_THREADS)
        #: The error that ended the client, if there was one.
        self.failure: BaseException | None = None
        self._built = build_topology(application, config)
        self._given_broker = broker
        self._worker = worker
        self._broker: Broker | None = None
        self._context: ClientContext | None = None
        self._state = ClientState.CREATED
        self._changed = threading.Condition(threading.RLock())
        self._paused = threading.Event()
        self._threads: list[StreamThread] = []
        self._global = GlobalStores(self._built, self._global_thread_failed)
        self._replaced: set[StreamThread] = set()
        self._progress_of_ended_threads = Progress(0, ())
        self._closer: threading.Thread | None = None
        self._state_listener: StateListener | None = None
        self._restore_listener: RestoreListener | None = None
        self._tracing: Tracing | None = None
        self._exception_handler: UncaughtExceptionHandler = shut_down_client
        #: Whether ``run`` was called: it raises the error that ends the client.
        self._raises = False

    def __repr__(self) -> str:
        return f"Streams({self.config.application_id!r}, {self._state.name}, {len(self._threads)} threads)"

    # Before the start

    def set_state_listener(self, listener: StateListener) -> None:
        """Set the function to call at every change of ``state``. It must not wait for the client."""
        self._require_created("set_state_listener")
        self._state_listener = listener

    def set_restore_listener(self, listener: RestoreListener) -> None:
        """Set the listener to call at the start, progress and end of the restoring of a store."""
        self._require_created("set_restore_listener")
        self._restore_listener = listener

    def set_tracing(self, tracing: Tracing) -> None:
        """Set the tracing of the tasks, such as ``pystreams.telemetry.Telemetry``."""
        self._require_created("set_tracing")
        self._tracing = tracing

    def set_uncaught_exception_handler(self, handler: UncaughtExceptionHandler) -> None:
        """Set the handler that decides what happens when a stream thread fails; without one the client shuts down."""
        self._require_created("set_uncaught_exception_handler")
        self._exception_handler = handler

    def set_application_server(self, endpoint: str) -> None:
        """Set the setting ``application_server``, ``host:port``: for a server that knows its port only once it listens.
        Raises ``ConfigError``."""
        self._require_created("set_application_server")
        self.config = self.config.override({"application_server": endpoint})

    # Life cycle

    @property
    def state(self) -> ClientState:
        return self._state

    @property
    def finished(self) -> bool:
        """True once the client has ended, with or without an error."""
        return self._state in _ENDED

    def start(self, *, stop: threading.Event | None = None) -> None:
        """Check topics, create internal ones, fill global stores, and start the threads. If ``stop`` is set, the
        filling of global stores ends early.

        Raises ``TopicError``, ``RetentionError``, ``TopologyError``, ``StateError``, ``BrokerError``; the client is in
        state ERROR then.
        """
        self._require_created("start")
        try:
            self._broker = self._given_broker or open_broker(self.config, self._clock)
            self._context = prepare(
                self._built,
                self.config,
                self._broker,
                self._broker.admin(),
                self._clock,
                self.metrics,
                self._restore_listener,
                self._tracing,
                self._worker,
            )
            filled = self._global.fill(self._context, lambda: self.finished or bool(stop and stop.is_set()))
        except BaseException as error:
            self.failure = error
            self._global.close()
            self._release()
            self._set_state(ClientState.PENDING_ERROR)
            self._set_state(ClientState.ERROR)
            raise
        if self.finished:  # closed meanwhile
            self._global.close()
            self._release()
            return
        if self._context.neighbours is not None:
            self._context.neighbours.begin(self._look)
        self._set_state(ClientState.REBALANCING)
        with self._changed:
            if self._global.failure is not None:
                # The global thread may have failed just before the state changed.
                self._global_thread_failed(self._global.failure)
            if self._state not in _GOING or not filled:
                return  # closed meanwhile, or to be closed by the caller, who has set ``stop``
            # A topology that has only global stores has no tasks.
            count = self.config.num_stream_threads if self._built.subtopologies else 0
            threads = [self._new_thread() for _ in range(count)]
            if not threads:
                self._set_state(ClientState.RUNNING)
        for thread in threads:
            thread.start()

    def _global_thread_failed(self, error: BaseException) -> None:
        with self._changed:
            if self._state in _GOING:
                self.failure = error
                log.error("the global stores cannot be kept up to date: %s", error, exc_info=error)
                self._begin_close(ClientState.PENDING_ERROR)

    def close(self, timeout: timedelta | float | None = None, *, leave_group: bool | None = None) -> bool:
        """Commit, close all tasks, leave the group. Returns whether this was done within ``timeout`` (a timedelta or
        ms; None: without limit). If a stream thread calls it, it only begins to close, and returns False.

        With ``leave_group=False`` the group keeps the tasks for this client until its session times out: if it comes
        back in time, there is no rebalance. None: static members (``group_instance_id``) stay in the group, others
        leave. Source: KIP-812, KIP-1153.
        """
        with self._changed:
            if self._state is ClientState.CREATED:
                self._set_state(ClientState.PENDING_SHUTDOWN)
                self._set_state(ClientState.NOT_RUNNING)
            elif self._state in _GOING:
                self._begin_close(ClientState.PENDING_SHUTDOWN, leave_group)
        if any(thread.is_current for thread in self._threads):
            return False
        ended = self.wait_for(lambda: self.finished, timeout)
        if ended and self._closer is not None and self._closer is not threading.current_thread():
            # The state listener must be called with the final state before the caller continues, and perhaps exits.
            self._closer.join(_LISTENER_TIMEOUT_S)
        return ended

    def run(
        self,
        *,
        until_caught_up: bool = False,
        on_progress: Callable[[Progress], None] | None = None,
        stop: threading.Event | None = None,
    ) -> None:
        """Start, and run until SIGINT or SIGTERM (or until all records have been processed), then close.

        ``on_progress`` is called about ten times a second. Any thread may set ``stop``, which has the effect of a
        signal. Raises the error that ended the client, and ``CloseTimeoutError`` if it does not close within
        ``close_timeout_ms``: then its threads end with the process.
        """
        stop = threading.Event() if stop is None else stop
        self._raises = True
        timeout_ms = self.config.close_timeout_ms
        run_client(self, stop, timeout_ms, until_caught_up=until_caught_up, on_progress=on_progress)

    def wait_for(self, condition: Callable[[], bool], timeout: timedelta | float | None = None) -> bool:
        """Wait until ``condition`` is true. It is checked at every change of state, and ten times a second, because it
        may depend on other things. False if ``timeout`` ends first."""
        milliseconds = timeout / timedelta(milliseconds=1) if isinstance(timeout, timedelta) else timeout
        deadline = Deadline(SystemClock(), math.inf if milliseconds is None else milliseconds)
        while not condition():
            if deadline.expired():
                return False
            # Do not check the condition under this lock: it may ask the log, and threads would wait for the answer.
            with self._changed:
                self._changed.wait(min(_CHECK_S, deadline.remaining_ms() / 1000))
        return True

    # Threads

    def add_stream_thread(self) -> str | None:
        """Start one more thread. Returns its name, or None if the client is not running."""
        with self._changed:
            if self._state not in _GOING:
                return None
            thread = self._new_thread()
            self._share_cache()
        thread.start()
        return thread.name

    def remove_stream_thread(self, timeout: timedelta | float | None = None) -> str | None:
        """Stop one thread, but not the calling one. Returns its name, or None if there is none to stop. If it does not
        end within ``timeout`` (a timedelta or ms; None: without limit), it ends later."""
        with self._changed:
            candidates = [thread for thread in self._threads if thread.alive and not thread.is_current]
            if self._state not in _GOING or not candidates:
                return None
            thread = candidates[-1]
            thread.stop(leave=True)
        self.wait_for(lambda: thread not in self._threads, timeout)
        return thread.name

    # Pause

    @property
    def is_paused(self) -> bool:
        return self._paused.is_set()

    def pause(self) -> None:
        """Process no records and call no punctuators until ``resume``. If this is called before ``start``, the client
        starts paused.

        Everything else continues: the client keeps its tasks and its state, reads ahead as far as its buffers allow,
        commits processed records, restores stores and takes part in rebalances. The pause applies to this client only,
        and is not stored. The record at work, and perhaps some after it, are still processed. Source: KIP-834.
        """
        self._paused.set()

    def resume(self) -> None:
        """Continue after ``pause``."""
        self._paused.clear()

    # Progress and state

    def progress(self) -> Progress:
        """The progress of the threads, as of about 100 ms ago."""
        with self._changed:
            threads = tuple(thread.snapshot for thread in self._threads)
            return self._progress_of_ended_threads.going_on_with(threads)

    def activities(self) -> dict[str, Activity]:
        """The current activity of each stream thread, by its name."""
        with self._changed:
            return {thread.name: thread.activity for thread in self._threads}

    def health(self, *, lag_max: int | None = None) -> Health:
        """Whether the client works (``live``) and others may rely on it (``ready``), with the reasons why not.

        A client is ready when all its tasks are restored and run, and the lag of their inputs is at most ``lag_max``
        records (None: no limit). It is not live after an error has ended it, and when a function of the program has not
        returned for ``max_poll_interval_ms``: then only a new process helps."""
        with self._changed:
            threads = list(self._threads)
            return health_of(
                self._state,
                [thread.snapshot for thread in threads],
                {thread.name: thread.round_ms for thread in threads},
                stuck_after_ms=self.config.max_poll_interval_ms,
                lag_max=lag_max,
                has_subtopologies=bool(self._built.subtopologies),
            )

    @property
    def client_id(self) -> str:
        """The name of the client, with which the names of its threads begin; empty before the start."""
        if self._context is None:
            return ""
        worker = self._context.worker.number
        if self.config.client_id is not None:
            return f"{self.config.client_id}-{worker}"
        return f"{self.config.application_id}-{self._context.process_id}-{worker}"

    @property
    def left_out(self) -> dict[str, int]:
        """The number of records that were moved to the dead-letter topic, skipped because they failed, or dropped: by
        these words. Counts of 0 are left out. Records whose processing was undone by a failure do not count."""
        return {} if self._context is None else self._context.left_out.totals()

    @property
    def late_records(self) -> list[LateRecords]:
        """The records that were too late for a window, by step: how many, how late, and the grace that would have kept
        them. They count as ``left_out``, too, except records that a join has not dropped because they were too late
        only for records of the other stream."""
        return [] if self._context is None else self._context.left_out.late()

    @property
    def joins(self) -> list[Unmatched]:
        """The joins, each with the number of records without a match, and whether any record has found one. A join in
        which none has is logged, and named in the last line of ``run``."""
        return [] if self._context is None else self._context.left_out.unmatched()

    @property
    def left_out_kinds(self) -> dict[Kind, int]:
        """The records that count as ``left_out``, by step, topic and reason."""
        return {} if self._context is None else dict(self._context.left_out.kinds())

    @property
    def last_failures(self) -> list[LeftOutRecord]:
        """The last records that failed and were skipped or moved to the dead-letter topic; the newest one first."""
        return [] if self._context is None else self._context.left_out.last()

    @property
    def built(self) -> BuiltTopology:
        """The topology as it runs."""
        return self._built

    @property
    def log_description(self) -> str:
        """A description of the log for people; empty before the start."""
        return "" if self._broker is None else self._broker.description

    def application_status(self) -> ApplicationStatus | None:
        """The state of the application in all its processes, as the log shows it; None before the start. This asks the
        log, which may take a while.

        Raises ``TopicError``, ``BrokerUnavailableError``, ``BrokerError``."""
        if self._context is None or self._broker is None:
            return None
        return application_status(
            self._context.admin,
            self._built,
            self.config.auto_offset_reset,
            reads_committed=self._broker.reads_committed,
        )

    @property
    def task_count(self) -> int:
        """The number of tasks of the application, in all its processes together; 0 before the start."""
        return len(self.task_ids)

    @property
    def task_ids(self) -> Collection[TaskId]:
        """The tasks of the application, in all its processes together; none before the start."""
        return () if self._context is None else self._context.inputs.keys()

    def metadata_for_local_threads(self) -> tuple[ThreadProgress, ...]:
        """The threads of this client with their tasks."""
        return self.progress().threads

    def caught_up(self) -> bool:
        """True if the whole application has processed and committed all records: in every input topic, external
        and internal, the committed offset is the end offset, and no task of this client is being restored.

        Then the results of all records are committed, including cached ones. Wall-clock punctuators do not count,
        because they never end."""
        if self._state is not ClientState.RUNNING or self._context is None:
            return False
        if not all(self._settled(thread) for thread in list(self._threads)):
            return False
        try:
            return self._context.everything_is_committed()
        except BrokerError:
            # The client may have ended meanwhile, and closed its log.
            if self.state is ClientState.RUNNING:
                raise
        return False

    def request_commit(self) -> None:
        """Request that every thread commits soon."""
        for thread in list(self._threads):
            thread.request_commit()

    def store(
        self,
        name: str,
        *,
        freshness: Freshness = "latest",
        standbys: bool = False,
        at_least: Position | None = None,
        timeout: timedelta | float = _ANSWER_TIMEOUT_S * 1000,
        headers: bool = False,
        partitioner: KeyPartitioner | None = None,
    ) -> LocalStore:
        """Read a store of the tasks that run in this process.

        ``freshness``: ``latest`` includes all records that the stream threads have processed, and waits for the
        threads; ``committed`` reads their last commits without waiting, thousands of keys a second. ``standbys``:
        committed reads may also use standbys of this process, for partitions without a running task here.
        ``at_least``: answers must include the input up to this position. Until then, or until the threads answer, a
        read waits for up to ``timeout`` (a timedelta or ms). Source: KIP-535, KIP-796.

        With ``headers``, entries of a store that keeps headers (``dsl_store_format``) include them; otherwise they do
        not.

        ``partitioner(key bytes, number of partitions)`` is the partitioner of the program that wrote the input
        (``pystreams.partitioning.partition_for_key`` is that of Java's producers). With it, a read knows that a key is
        absent although other processes have other partitions. It is not needed if the application itself has
        repartitioned the records.

        Raises ``StateError`` for an unknown name, and for standbys with ``latest``.
        """
        timeout_ms = timeout / timedelta(milliseconds=1) if isinstance(timeout, timedelta) else timeout
        demands = Demands.of(freshness, at_least, timeout_ms, standbys=standbys)
        return local_store(
            name,
            self._built,
            self._readers,
            self._context,
            self._clock,
            demands,
            headers=headers,
            partitioner=partitioner,
        )

    def endpoints(self, store: str) -> dict[int, Places]:
        """For each partition of a store, the member that has it and the members that have standbys of it, each with its
        ``application_server``, as last sent by the group. Raises ``StateError`` for an unknown name."""
        return self.store(store).places

    def _readers(self) -> list[StreamThread]:
        """The threads that can read stores. Raises ``StateError`` for a client that will never have any again."""
        if self._state in _ENDED:
            raise StateError(
                "stores cannot be read through this client any more",
                why="it was closed"
                if self._state is ClientState.NOT_RUNNING
                else "it has ended with an error",
                hint="start a new Streams of the same topology",
            )
        return [thread for thread in self._threads if thread.alive]

    def _settled(self, thread: StreamThread) -> bool:
        if thread.state is not ThreadState.RUNNING:
            return False
        try:
            return thread.call(lambda tasks: tasks.settled).result(_ANSWER_TIMEOUT_S)
        except (StreamsError, TimeoutError):
            return False

    # Methods that threads call

    def thread_changed(self, thread: StreamThread, old: ThreadState, new: ThreadState) -> None:
        with self._changed:
            self.metrics.gauge(names.ALIVE_STREAM_THREADS).set(sum(t.alive for t in self._threads))
            if self._state in _GOING:
                states = {t.state for t in self._threads if t.alive}
                if states == {ThreadState.RUNNING}:
                    self._set_state(ClientState.RUNNING)
                elif states & {ThreadState.PARTITIONS_ASSIGNED, ThreadState.PARTITIONS_REVOKED}:
                    self._set_state(ClientState.REBALANCING)
            self._changed.notify_all()

    def thread_failed(self, thread: StreamThread, error: BaseException) -> bool:
        """Let the exception handler decide. True if the thread must ask the whole application to stop."""
        if self._state not in _GOING:
            self.failure = self.failure or error
            self._log_failure(thread, error)
            return False
        self.metrics.counter(names.FAILED_STREAM_THREADS).add()
        response = response_to(error, self._exception_handler)
        with self._changed:
            if self._state not in _GOING:
                self._log_failure(thread, error)
                return False
            if response is UncaughtExceptionResponse.REPLACE_THREAD:
                self._replaced.add(thread)
                self._log_failure(thread, error)
                return False
            self.failure = error
            self._log_failure(thread, error)
            if response is UncaughtExceptionResponse.SHUTDOWN_CLIENT:
                self._begin_close(ClientState.PENDING_ERROR)
                return False
            return True

    def _log_failure(self, thread: StreamThread, error: BaseException) -> None:
        """Log the failure; at level INFO if ``run`` raises the error, so that users do not see its traceback twice."""
        level = logging.INFO if self._raises and error is self.failure else logging.ERROR
        log.log(level, "[%s] failed: %s", thread.name, error, exc_info=error)

    def thread_ended(self, thread: StreamThread) -> None:
        replacement: StreamThread | None = None
        with self._changed:
            self._threads.remove(thread)
            ended = self._progress_of_ended_threads
            self._progress_of_ended_threads = ended.going_on_with((thread.snapshot,))
            if thread in self._replaced:
                self._replaced.discard(thread)
                if self._state in _GOING:
                    replacement = self._new_thread()
            elif thread.shutdown_requested and self._state in _GOING:
                self._begin_close(ClientState.PENDING_ERROR)
            if self._state in _GOING:
                self._share_cache()
            self._changed.notify_all()
        if replacement is not None:
            log.info("[%s] is replaced by %s", thread.name, replacement.name)
            replacement.start()

    def application_shutdown(self) -> None:
        with self._changed:
            if self._state in _GOING:
                self.failure = self.failure or asked_to_stop(self.config.application_id)
                self._begin_close(ClientState.PENDING_ERROR)

    def housekeeping(self) -> None:
        if self._context is not None:
            self.metrics.roll()
            self._context.cleanup.now_and_then()
            self._context.left_out.log_counts(self._clock.monotonic_ms())

    # Internals

    def _progress_samples(self) -> list[Sample]:
        """The metrics that are computed from the progress."""
        threads = self.progress().threads
        return [
            Sample(names.CLIENT_STATE, (), _STATES.index(self._state)),
            *(sample for thread in threads for sample in thread_samples(thread)),
        ]

    def _client_samples(self) -> Sequence[Sample]:
        """The metrics of the log's clients."""
        return () if self._context is None else self._context.broker.samples()

    def _store_samples(self) -> list[Sample]:
        return [sample for thread in list(self._threads) for sample in thread.store_samples()]

    def _require_created(self, what: str) -> None:
        if self._state is not ClientState.CREATED:
            raise StateError(
                f"{what} is for a client that has not been started",
                why=f"this one is {self._state.value.replace('_', ' ')}",
                hint="make a new Streams of the same topology",
            )

    def _new_thread(self) -> StreamThread:
        """Create a thread with the least free number. The caller starts it."""
        assert self._context is not None
        context = self._context
        taken = {thread.index for thread in self._threads}
        index = next(i for i in range(1, len(taken) + 2) if i not in taken)
        thread = StreamThread(
            f"{self.client_id}-StreamThread-{index}",
            index,
            context,
            self,
            self.config.statestore_cache_max_bytes // max(len(taken) + 1, self.config.num_stream_threads),
        )
        self._threads.append(thread)
        return thread

    def _share_cache(self) -> None:
        for thread in self._threads:
            thread.resize_cache(self.config.statestore_cache_max_bytes // len(self._threads))

    def _begin_close(self, state: ClientState, leave_group: bool | None = None) -> None:
        self._set_state(state)
        name = f"{self.config.application_id}-close"
        self._closer = threading.Thread(
            target=self._finish_close, args=(leave_group,), name=name, daemon=True
        )
        self._closer.start()

    def _finish_close(self, leave_group: bool | None) -> None:
        with self._changed:
            threads = list(self._threads)
            for thread in threads:
                thread.stop(leave=leave_group)
        self.wait_for(lambda: not self._threads)
        for thread in threads:
            thread.join()
        self._global.close()
        self._release()
        ending = ClientState.ERROR if self._state is ClientState.PENDING_ERROR else ClientState.NOT_RUNNING
        self._set_state(ending)

    def _look(self) -> None:
        for thread in list(self._threads):
            thread.look()

    def _release(self) -> None:
        context = self._context
        if context is not None:
            for watching in (context.watch, context.neighbours, context.snapshots):
                if watching is not None:
                    watching.close()
            context.admin.close()
        if self._broker is not None and not self._given_broker:
            self._broker.close()
        if context is not None:
            context.worker.release()
            context.left_out.log_counts(self._clock.monotonic_ms(), 0)

    def _set_state(self, state: ClientState) -> None:
        with self._changed:
            old = self._state
            if old is state:
                return
            owner = f"client {self.config.application_id}"
            self._state = check_transition(owner, CLIENT_SUCCESSORS, old, state)
            self._changed.notify_all()
        log.info("application %s: %s -> %s", self.config.application_id, old.name, state.name)
        if self._state_listener is not None:
            try:
                self._state_listener(state, old)
            except Exception:
                # An error of the listener must not stop the change of state, such as the end of the client.
                log.exception("the state listener failed at %s -> %s", old.name, state.name)
