"""Settings of an application: Kafka Streams' names with underscores, checked when they are given.

A setting comes from the program, the environment (``PYSTREAMS_COMMIT_INTERVAL_MS``) or the command line; a later one
of these overrides an earlier: ``config.override(flags, settings_from_environment(os.environ))``.
"""

# ruff: noqa: RUF009 - _setting is dataclasses.field with a shorter name
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from pystreams.config import sources
from pystreams.config.client_setting import Role
from pystreams.config.client_settings import (
    client_settings,
    client_value,
    given_for,
    held_by_application,
    in_force,
)
from pystreams.config.group_protocol import check_group_protocol
from pystreams.config.offset_reset import offset_reset
from pystreams.config.secret import is_secret, shown
from pystreams.config.serde_settings import serde_settings, serde_value
from pystreams.config.values import (
    INT_MAX,
    Parse,
    choice,
    client_tags,
    duration,
    extractor,
    flag,
    folder_or_url,
    handler,
    imported,
    name_of_application,
    number,
    optimizations,
    path,
    serde,
    server,
    servers,
    size,
    stores,
    tag_names,
    text,
    token_provider,
    topic_settings,
    trimmed,
    word,
)
from pystreams.errors import ConfigError

DEFAULT_STATE_DIR: Final = Path(".pystreams/state")
DEFAULT_EMBEDDED_LOG: Final = Path(".pystreams/log.db")

_KIB: Final = 1024
_MIB: Final = 1024 * _KIB
_DAY_MS: Final = 86_400_000

#: The consumers that read what others wrote.
_INPUT_ROLES: Final[tuple[Role, ...]] = ("main.consumer", "global.consumer")


def _setting(default: Any, parse: Parse) -> Any:
    """A field; the default needs no parsing. If the default is None, a user may give None, too."""
    return field(default=default, metadata={"parse": parse})


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsConfig:
    """The settings of one application. Make it with ``of`` or ``from_mapping``, vary it with ``override``.

    Durations are milliseconds, sizes bytes. Raises ``ConfigError`` for a value of the wrong kind or range, and for
    settings that contradict each other. Source of names and defaults: org.apache.kafka.streams.StreamsConfig.
    """

    #: The name of the consumer group, and the prefix of internal topics and of the state's folder.
    application_id: str = field(metadata={"parse": name_of_application})
    #: Addresses of the Kafka brokers, ``host:port,host:port``; None: the embedded log.
    bootstrap_servers: str | None = _setting(None, servers)
    #: Settings of Kafka's clients by their Java names and prefixes (``producer.linger.ms``, ``sasl.password``). Each
    #: can also be given as a setting of its own under this name.
    client_settings: Mapping[str, str] = field(
        default_factory=dict, repr=False, metadata={"parse": client_settings}
    )
    #: A function that returns tokens for the login with OAUTHBEARER, each with its expiry time (s since 1970).
    oauth_token_provider: Any = field(default=None, repr=False, metadata={"parse": token_provider})
    #: The prefix of the names of clients and threads; None: the application's id and a process id.
    client_id: str | None = _setting(None, text)
    #: How results survive failures: ``at_least_once``, or ``exactly_once_v2``, which uses transactions on Kafka. None:
    #: exactly once on the embedded log, where it costs nothing, at least once on Kafka.
    processing_guarantee: str | None = _setting(None, choice("at_least_once", "exactly_once_v2"))
    #: The file of the embedded log.
    embedded_log: Path = _setting(DEFAULT_EMBEDDED_LOG, path)
    #: The folder of the tasks' stores, which are in ``<application_id>/<task>``.
    state_dir: Path = _setting(DEFAULT_STATE_DIR, path)

    #: Where snapshots of the stores are kept, for machines without the state: a folder that all of them reach, or a URL
    #: that fsspec knows (``s3://bucket/snapshots``). Logins belong into fsspec's own configuration. None: nowhere.
    state_snapshot_dir: str | None = _setting(None, folder_or_url)
    #: How often a snapshot of each task is taken, if its stores have changed.
    state_snapshot_interval_ms: int = _setting(600_000, duration(1))
    #: How many snapshots of each task are kept.
    state_snapshots_kept: int = _setting(2, number(1))

    #: Threads that process records. Python runs one at a time: for more speed, start more processes, not threads.
    num_stream_threads: int = _setting(1, number(1))
    #: How often to commit; None: 100 where offsets and outputs are committed atomically (exactly once), else 30,000.
    commit_interval_ms: int | None = _setting(None, duration())
    #: How long to wait for new records when there is nothing to do.
    poll_ms: int = _setting(100, duration())
    #: A partition with more buffered records than this is paused.
    buffered_records_per_partition: int = _setting(1_000, number(1))
    #: How long a task waits for records of an empty partition, so that records are processed in order of time across
    #: partitions; 0: only as long as the log has records that were not fetched yet; -1: never.
    max_task_idle_ms: int = _setting(0, duration(besides=-1))
    #: ``bounded``: behind topics that the application itself writes, stream time waits for tasks that lag, so their
    #: records are not late. ``java``: it waits for nobody, as in Kafka Streams.
    stream_time: str = _setting("bounded", choice("bounded", "java"))
    #: Stream time no longer waits for a task that lags and has committed nothing for this long.
    catch_up_wait_max_ms: int = _setting(300_000, duration())
    #: When it is stopped, ``run`` waits at most this long for the last commit and the end of all threads. Then it ends
    #: with an error that says what is not committed; -1: without limit.
    close_timeout_ms: int = _setting(-1, duration(besides=-1))
    #: How long a task may keep failing because the broker does not answer.
    task_timeout_ms: int = _setting(300_000, duration())
    #: If nothing arrives from a partition for this long although it has more records, the partition is assigned again,
    #: with a warning. A thread that takes this long for a record, a commit or anything else in one round is reported
    #: with its stack. 0: neither.
    stall_timeout_ms: int = _setting(60_000, duration())
    #: How often processed records are deleted from repartition topics.
    repartition_purge_interval_ms: int = _setting(30_000, duration())
    #: How often each thread logs a summary of its work; -1: never.
    log_summary_interval_ms: int = _setting(120_000, duration(besides=-1))
    #: ``DEBUG`` also measures each operation of the stores, which slows them down; ``INFO`` measures per batch only.
    metrics_recording_level: str = _setting("INFO", choice("INFO", "DEBUG"))
    #: How often Kafka's clients report their connections, requests and queues to ``Streams.metrics``; 0: never.
    client_statistics_interval_ms: int = _setting(10_000, duration(maximum=_DAY_MS))

    #: Memory for the record caches, shared by all threads; 0 forwards every update.
    statestore_cache_max_bytes: int = _setting(10 * _MIB, size())
    #: More uncommitted writes than this force a commit.
    statestore_uncommitted_max_bytes: int = _setting(64 * _MIB, size(1))
    #: RocksDB's block cache, one for the process.
    rocksdb_block_cache_bytes: int = _setting(64 * _MIB, size(64 * _KIB))
    #: RocksDB's write buffers, in total for the process.
    rocksdb_write_buffer_bytes: int = _setting(64 * _MIB, size(64 * _KIB))
    #: When a task has left this machine, its state is deleted after this time.
    state_cleanup_delay_ms: int = _setting(600_000, duration())
    #: At the start, state of any task that did not change for this long is deleted; -1: none is deleted.
    state_cleanup_dir_max_age_ms: int = _setting(-1, duration(besides=-1))

    #: Serde (or type) of keys for topics and stores without their own.
    default_key_serde: Any = _setting(bytes, serde)
    #: Serde (or type) of values for topics and stores without their own.
    default_value_serde: Any = _setting(bytes, serde)
    #: The schema registry (``schema.registry.url``, ``schema.registry.basic.auth.user.info``) and how serdes use
    #: schemas (``auto.register.schemas``). Each can also be given as a setting of its own under this name.
    serde_settings: Mapping[str, str] = field(
        default_factory=dict, repr=False, metadata={"parse": serde_settings}
    )
    #: The function that returns a record's time; None: the record's own timestamp, and a negative one is an error.
    default_timestamp_extractor: Any = _setting(None, extractor)
    #: Where to start in an input without a committed offset: earliest, latest, or ``by_duration:PT1H`` (or a timedelta)
    #: before now; ``none`` refuses to start.
    auto_offset_reset: str = _setting("earliest", offset_reset)

    #: The handler of records that cannot be deserialized.
    deserialization_exception_handler: Any = _setting("fail", handler)
    #: The handler of records for which a function of the program raises.
    processing_exception_handler: Any = _setting("fail", handler)
    #: Whether the processing handler also decides for global stores; otherwise a failing processor stops the client.
    processing_exception_handler_global_enabled: bool = _setting(False, flag)
    #: The handler of records that cannot be produced.
    production_exception_handler: Any = _setting("fail", handler)
    #: The topic to which ``dead_letter`` handlers write records.
    errors_dead_letter_queue_topic_name: str | None = _setting(None, text)
    #: Also write input records that steps drop to the dead-letter topic: null keys and values, closed windows, negative
    #: timestamps.
    dead_letter_dropped_records: bool = _setting(False, flag)

    #: The allowed optimizations of the topology: ``none``, ``all``, or some of ``reuse.ktable.source.topics``,
    #: ``merge.repartition.topics``, ``single.store.self.join`` with commas between them.
    topology_optimization: str = _setting("none", optimizations)
    #: Code of the program that wraps every step: a ``ProcessorWrapper``, its class, a function of (name, supplier),
    #: or the place to import one of them from: ``MODULE:NAME``.
    processor_wrapper: Any = _setting(None, imported)
    #: The kind of store for DSL steps without ``persistent=``: ``rocksDB`` (on disk) or ``in_memory``. Tables with
    #: ``history=`` are on disk.
    default_dsl_store: str = _setting("rocksDB", choice("rocksDB", "in_memory"))
    #: The format of persistent stores of DSL steps: ``DEFAULT``, or ``HEADERS`` to keep headers, too (DSL steps leave
    #: them empty so far). It may change between runs: existing stores are converted.
    dsl_store_format: str = _setting("DEFAULT", word("DEFAULT", "HEADERS"))
    #: Replication factor of internal topics; -1: the broker's default.
    replication_factor: int = _setting(-1, number(1, besides=-1, maximum=2**15 - 1))
    #: Settings of all internal topics, by Kafka's names. Each can also be given as ``topic.retention.ms``.
    topic_config: Mapping[str, str] = field(default_factory=dict, metadata={"parse": topic_settings})
    #: Added to a window's retention for its changelog, to allow for differences between clocks.
    windowstore_changelog_additional_retention_ms: int = _setting(_DAY_MS, duration())
    #: Retention of window changelogs instead of the computed one, for inputs with old timestamps; -1: for ever.
    window_changelog_retention_ms: int | None = _setting(None, duration(besides=-1))
    #: Start even if the outputs' retention would delete records that are as old as the inputs'.
    allow_expired: bool = _setting(False, flag)

    #: Names, with commas between them, of stores that may lose their contents because the changed program cannot keep
    #: them. Without it such a start is refused.
    accept_loss: str | None = _setting(None, stores)

    #: How many copies of each task's stores are kept filled in other processes, which then go on at once if this one
    #: ends. A copy needs another process with a state directory of its own.
    num_standby_replicas: int = _setting(0, number(0))
    #: A process with at most this many changelog records to read can take over a task; else it warms up first.
    acceptable_recovery_lag: int = _setting(10_000, number(0))
    #: How many tasks at a time may warm up, beyond the standbys, in the processes to which they are to move.
    max_warmup_replicas: int = _setting(2, number(1))
    #: While tasks warm up, the group rebalances as soon as they are ready, and at the latest after this time.
    probing_rebalance_interval_ms: int = _setting(600_000, duration(60_000))
    #: Where this process is: for each tag its value. Each can also be given as ``client.tag.zone``.
    client_tags: Mapping[str, str] = field(default_factory=dict, metadata={"parse": client_tags})
    #: The tags, with commas between them, in which the copies of a task should differ, such as ``zone,cluster``.
    rack_aware_assignment_tags: str = _setting("", tag_names)
    #: Whether tasks go to processes in the rack (``client.rack``) of their partitions: with ``min_traffic`` as few
    #: partitions as possible are read from other racks; ``balance_subtopology`` does so within an even spread of each
    #: sub-topology; ``none`` does not look at racks.
    rack_aware_assignment_strategy: str = _setting(
        "none", choice("none", "min_traffic", "balance_subtopology")
    )
    #: The cost of a partition that is read from another rack; None: 10.
    rack_aware_assignment_traffic_cost: int | None = _setting(None, number(0))
    #: The cost of a task that moves to another process for the sake of racks; None: 1.
    rack_aware_assignment_non_overlap_cost: int | None = _setting(None, number(0))
    #: Code of the program that assigns the tasks instead of the built-in assignor: a ``TaskAssignor``, its class, a
    #: function of the ``ApplicationState``, or the place to import one of them from: ``MODULE:NAME``.
    task_assignor_class: Any = _setting(None, imported)

    #: The protocol of the group on Kafka. With ``classic`` the application assigns the tasks, with ``streams`` the
    #: broker (KIP-1071, Kafka 4.2 or newer). The embedded log has a protocol of its own.
    group_protocol: str = _setting("classic", choice("classic", "streams"))
    #: Makes members static on Kafka: a member that returns within ``session_timeout_ms`` gets its tasks back without a
    #: rebalance; a worker of ``run --workers`` if its next process has shown up within five seconds. The numbers of
    #: worker and thread are appended; every state directory needs its own id.
    group_instance_id: str | None = _setting(None, text)
    #: ``HOST:PORT`` where other processes can query this one. All members of the group get to know the address of each
    #: partition's owner and standbys (``Streams.endpoints``). The setting alone opens no port.
    application_server: str | None = _setting(None, server)
    #: A member that sends no heartbeat for this long is removed from the group.
    session_timeout_ms: int = _setting(45_000, duration(1, maximum=INT_MAX))
    #: How often a member sends a heartbeat.
    heartbeat_interval_ms: int = _setting(3_000, duration(1, maximum=INT_MAX))
    #: A thread that does not poll for this long, because it processes, is removed from the group.
    max_poll_interval_ms: int = _setting(300_000, duration(1, maximum=INT_MAX))

    def __post_init__(self) -> None:
        for f in fields(self):
            given = getattr(self, f.name)
            if given is not None or f.default is not None:
                object.__setattr__(self, f.name, _parsed(f.name, given, f.metadata["parse"]))
        for name, value in held_by_application(self.client_settings).items():
            object.__setattr__(self, name, _parsed(name, value, _PARSERS[name]))
        self._check_heartbeats()
        if self.on_kafka:
            self.check_group_protocol()
        self._check_dead_letters()
        self._check_tags()
        self._check_transactions()

    def _check_heartbeats(self) -> None:
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise ConfigError(
                f"heartbeat_interval_ms ({self.heartbeat_interval_ms}) is not below"
                f" session_timeout_ms ({self.session_timeout_ms})",
                why="the group would remove a member before its next heartbeat",
                hint="a third of session_timeout_ms or less is usual",
            )

    def check_group_protocol(self) -> None:
        """Raises ``ConfigError`` for a setting that has no effect with ``group_protocol`` on a log whose brokers can
        assign the tasks."""
        changed = {f.name: value for f in fields(self) if (value := getattr(self, f.name)) != f.default}
        check_group_protocol(self.group_protocol, self.application_id, changed)

    def _check_tags(self) -> None:
        """Source: StreamsConfig.verifyClientTags."""
        for tag in filter(None, self.rack_aware_assignment_tags.split(",")):
            if tag not in self.client_tags:
                raise ConfigError(
                    f"rack_aware_assignment_tags has the tag {tag}, but the tag has no value",
                    hint=f"set client.tag.{tag}, in each process to where it is",
                )

    def _check_dead_letters(self) -> None:
        if self.errors_dead_letter_queue_topic_name is not None:
            return
        for name in _HANDLERS:
            if getattr(self, name) == "dead_letter":
                raise ConfigError(
                    f"{name} is dead_letter, but no dead-letter topic is set",
                    hint="set errors_dead_letter_queue_topic_name",
                )
        if self.dead_letter_dropped_records:
            raise ConfigError(
                "dead_letter_dropped_records is true, but no dead-letter topic is set",
                hint="set errors_dead_letter_queue_topic_name",
            )

    @property
    def on_kafka(self) -> bool:
        """Whether the application runs on Kafka, and not on the embedded log."""
        return self.bootstrap_servers is not None

    @property
    def exactly_once(self) -> bool:
        """Whether outputs and offsets are committed atomically: always on the embedded log."""
        return not self.on_kafka or self.processing_guarantee == "exactly_once_v2"

    def check_guarantee(self, *, transactional: bool) -> None:
        """Raises ``ConfigError`` if the log, with or without transactions, cannot keep ``processing_guarantee``."""
        if self.processing_guarantee == "exactly_once_v2" and not transactional:
            raise ConfigError(
                "processing_guarantee cannot be exactly_once_v2: the given broker works without transactions",
                hint="make it with exactly_once=True, or pass bootstrap_servers instead of a broker",
            )

    def _check_transactions(self) -> None:
        """Source: StreamsConfig.verifyEOSTransactionTimeoutCompatibility."""
        if not (self.on_kafka and self.exactly_once):
            return
        for role in _INPUT_ROLES:
            if given_for(self.client_settings, role).get("isolation.level") == "read_uncommitted":
                raise ConfigError(
                    "isolation_level cannot be read_uncommitted with processing_guarantee=exactly_once_v2",
                    why="the results of aborted transactions would be read and counted",
                    hint="leave isolation_level out: consumers read what is committed",
                )
        timeout_ms = int(in_force(self.client_settings, "producer")["transaction.timeout.ms"])
        interval_ms = self.effective_commit_interval_ms(transactional=True)
        if timeout_ms < interval_ms:
            raise ConfigError(
                f"transaction_timeout_ms ({timeout_ms}) is below commit_interval_ms ({interval_ms})",
                why="the brokers would end every transaction before its commit",
                hint="raise transaction_timeout_ms, or commit more often",
            )

    @classmethod
    def of(cls, **settings: Any) -> StreamsConfig:
        """The configuration with these settings; the others have their defaults."""
        return cls.from_mapping(settings)

    @classmethod
    def from_mapping(cls, settings: Mapping[str, Any]) -> StreamsConfig:
        """As ``of``, with names as strings, dotted (``commit.interval.ms``) or underscored. None stands for the
        default.

        Raises ``ConfigError`` for an unknown name, with the nearest one, and for a missing ``application_id``.
        """
        given = merge_settings(settings)
        if given.get("application_id") is None:
            raise ConfigError(
                "application_id is missing",
                hint="set it: it is the name of the consumer group and the prefix of internal topics",
            )
        return cls(**given)

    def override(self, *given: Mapping[str, Any]) -> StreamsConfig:
        """A copy with the settings of the sources ``given``; the first source that has a setting wins."""
        return StreamsConfig(**merge_settings(*given, {f.name: getattr(self, f.name) for f in fields(self)}))

    def effective_commit_interval_ms(self, *, transactional: bool) -> int:
        """The commit interval. ``transactional``: whether the log commits outputs and offsets atomically."""
        if self.commit_interval_ms is not None:
            return self.commit_interval_ms
        return 100 if transactional else 30_000

    @property
    def client_rack(self) -> str:
        """The rack of this process: ``client.rack`` of the consumer of inputs."""
        return in_force(self.client_settings, "main.consumer").get("client.rack", "")

    def in_force(self) -> dict[str, str]:
        """Every setting as text for people; for a setting that was not given, its effective value."""
        transactional = self.exactly_once
        not_given = {
            "bootstrap_servers": "none: the embedded log",
            "client_id": f"{self.application_id}-<process id>",
            "commit_interval_ms": self.effective_commit_interval_ms(transactional=transactional),
            "default_timestamp_extractor": "fail",
            "processing_guarantee": "exactly_once_v2" if transactional else "at_least_once",
            "window_changelog_retention_ms": "computed from each window",
        }
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        values = {
            name: not_given.get(name, "none")
            if value is None
            else str(value).lower()
            if isinstance(value, bool)
            else value
            for name, value in values.items()
        }
        return {
            name: value if isinstance(value, str) and not is_secret(name) else shown(name, value)
            for name, value in values.items()
        }


_HANDLERS: Final = tuple(f.name for f in fields(StreamsConfig) if f.metadata["parse"] is handler)
_PARSERS: Final[Mapping[str, Parse]] = {f.name: f.metadata["parse"] for f in fields(StreamsConfig)}
_NAMES: Final = frozenset(_PARSERS)


def merge_settings(*given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of all sources by their underscored names; the first source that has a setting wins; None does not
    count.

    Topic settings (``topic.retention.ms``) are gathered in ``topic_config``, those of Kafka's clients
    (``producer.linger.ms``) in ``client_settings``, those of serdes (``schema.registry.url``) in ``serde_settings``,
    tags (``client.tag.zone``) in ``client_tags``; each name of them is merged by itself. Raises ``ConfigError`` for an
    unknown name, and for a setting that one source gives twice (dotted and underscored).
    """
    return sources.merged(given, _NAMES)


def settings_from_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The settings among environment variables: ``PYSTREAMS_POLL_MS=50`` is poll_ms. An empty one counts as absent.

    Raises ``ConfigError`` for an invalid value, and for a variable whose name is close to a setting's. All other
    variables with the prefix are ignored.
    """
    return sources.from_environment(environ, _NAMES, _parsed_part)


def _parsed_part(name: str, part: str, given: Any) -> Any:
    """The parsed value of one setting. ``part`` names the part of a mapping that is given in parts, or is empty."""
    if name == "client_settings" and part:
        return client_value(part, given)
    if name == "serde_settings" and part:
        return serde_value(part, given)
    return given if part else _parsed(name, given, _PARSERS[name])


def origins_of(given: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """The source of each setting, as ``sources.origins`` returns it."""
    return sources.origins(given, _NAMES)


def _parsed(name: str, given: Any, parse: Parse) -> Any:
    try:
        return parse(trimmed(given))
    except ValueError as expected:
        raise ConfigError(
            f"{name} cannot be {shown(name, given)}", why=f"expected {expected}", hint=_default_hint(name)
        ) from None


def _default_hint(name: str) -> str:
    default = next(f.default for f in fields(StreamsConfig) if f.name == name)
    return "" if default is MISSING or default is None else f"the default is {shown(name, default)}"
