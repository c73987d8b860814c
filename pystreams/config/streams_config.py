"""Settings of an application: Kafka Streams' names with underscores, checked when they are given.

A setting comes from the program, the environment (``PYSTREAMS_COMMIT_INTERVAL_MS``) or the command line; the later in
this list, the stronger: ``config.override(flags, settings_from_environment(os.environ))``.
"""

# ruff: noqa: RUF009 - _setting is dataclasses.field with a shorter name
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from pystreams.config import sources
from pystreams.config.client_settings import client_settings, client_value, held_by_application
from pystreams.config.offset_reset import offset_reset
from pystreams.config.secret import is_secret, shown
from pystreams.config.serde_settings import serde_settings, serde_value
from pystreams.config.values import (
    INT_MAX,
    Parse,
    choice,
    duration,
    extractor,
    flag,
    handler,
    imported,
    name_of_application,
    number,
    optimizations,
    path,
    serde,
    servers,
    size,
    stores,
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


def _setting(default: Any, parse: Parse) -> Any:
    """A field; the default needs no parsing. A default of None says: None may be given, too."""
    return field(default=default, metadata={"parse": parse})


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsConfig:
    """The settings of one application. Make it with ``of`` or ``from_mapping``, vary it with ``override``.

    Durations are milliseconds, sizes bytes. Raises ``ConfigError`` for a value of the wrong kind or range, and for
    settings that contradict each other. Source of names and defaults: org.apache.kafka.streams.StreamsConfig.
    """

    #: Names the group, internal topics and the state's folder.
    application_id: str = field(metadata={"parse": name_of_application})
    #: Kafka's addresses, ``host:port,host:port``; None: the embedded log.
    bootstrap_servers: str | None = _setting(None, servers)
    #: Settings of Kafka's clients by their Java names and prefixes (``producer.linger.ms``, ``sasl.password``);
    #: one by one they are given by these names.
    client_settings: Mapping[str, str] = field(
        default_factory=dict, repr=False, metadata={"parse": client_settings}
    )
    #: A function that gives tokens for the login with OAUTHBEARER, each with the time it expires (s since 1970).
    oauth_token_provider: Any = field(default=None, repr=False, metadata={"parse": token_provider})
    #: The beginning of the names of clients and threads; None: the application's and the process's id.
    client_id: str | None = _setting(None, text)
    #: What a failure may do to results; None: as good as the log can, which for the embedded log is exactly once.
    processing_guarantee: str | None = _setting(None, choice("at_least_once", "exactly_once_v2"))
    #: The file of the embedded log.
    embedded_log: Path = _setting(DEFAULT_EMBEDDED_LOG, path)
    #: Where tasks keep their stores, in ``<application_id>/<task>``.
    state_dir: Path = _setting(DEFAULT_STATE_DIR, path)

    #: Threads that process records. Python runs one at a time: more processes, not more threads, make it faster.
    num_stream_threads: int = _setting(1, number(1))
    #: How often to commit; None: 100 where a commit is atomic with the outputs (exactly once), else 30,000.
    commit_interval_ms: int | None = _setting(None, duration())
    #: How long to wait for new records when there is nothing to do.
    poll_ms: int = _setting(100, duration())
    #: A partition with more records waiting than this is paused.
    buffered_records_per_partition: int = _setting(1_000, number(1))
    #: How long a task waits for records of an empty partition, so that records are processed in order of time across
    #: partitions; 0: no longer than the log has such records; -1: never.
    max_task_idle_ms: int = _setting(0, duration(besides=-1))
    #: How long a task may keep failing for want of a broker's answer.
    task_timeout_ms: int = _setting(300_000, duration())
    #: How often what was processed of repartition topics is deleted from them.
    repartition_purge_interval_ms: int = _setting(30_000, duration())
    #: How often each thread logs what it has done; -1: never.
    log_summary_interval_ms: int = _setting(120_000, duration(besides=-1))

    #: Budget of the record caches, shared by all threads; 0 forwards every update.
    statestore_cache_max_bytes: int = _setting(10 * _MIB, size())
    #: Uncommitted writes beyond this force a commit.
    statestore_uncommitted_max_bytes: int = _setting(64 * _MIB, size(1))
    #: RocksDB's cache of blocks, one for the process.
    rocksdb_block_cache_bytes: int = _setting(64 * _MIB, size(64 * _KIB))
    #: RocksDB's write buffers, all together for the process.
    rocksdb_write_buffer_bytes: int = _setting(64 * _MIB, size(64 * _KIB))
    #: State of a task that left this machine is deleted after this time.
    state_cleanup_delay_ms: int = _setting(600_000, duration())
    #: At the start, state that did not change for this long is deleted, whosever it is; -1: none.
    state_cleanup_dir_max_age_ms: int = _setting(-1, duration(besides=-1))

    #: Serde (or type) of keys where the topology names none.
    default_key_serde: Any = _setting(bytes, serde)
    #: Serde (or type) of values where the topology names none.
    default_value_serde: Any = _setting(bytes, serde)
    #: The schema registry (``schema.registry.url``, ``schema.registry.basic.auth.user.info``) and what serdes do with
    #: schemas (``auto.register.schemas``); one by one they are given by these names.
    serde_settings: Mapping[str, str] = field(
        default_factory=dict, repr=False, metadata={"parse": serde_settings}
    )
    #: Gives a record its time; None: the record's own timestamp, and a negative one is an error.
    default_timestamp_extractor: Any = _setting(None, extractor)
    #: Where to begin in an input without a committed offset: earliest, latest, ``by_duration:PT1H`` (or a timedelta)
    #: ago; ``none`` refuses to start.
    auto_offset_reset: str = _setting("earliest", offset_reset)

    #: What to do with a record that cannot be read.
    deserialization_exception_handler: Any = _setting("fail", handler)
    #: What to do with a record for which a function of the program raised.
    processing_exception_handler: Any = _setting("fail", handler)
    #: Whether that is also asked for global stores, whose processors else stop the client when they fail.
    processing_exception_handler_global_enabled: bool = _setting(False, flag)
    #: What to do with a record that cannot be written.
    production_exception_handler: Any = _setting("fail", handler)
    #: Where ``dead_letter`` handlers put records.
    errors_dead_letter_queue_topic_name: str | None = _setting(None, text)
    #: Also put there the input records that steps drop: null keys and values, windows that have closed,
    #: negative timestamps.
    dead_letter_dropped_records: bool = _setting(False, flag)

    #: Which rewritings of the topology are allowed: ``none``, ``all``, or some of ``reuse.ktable.source.topics``,
    #: ``merge.repartition.topics``, ``single.store.self.join`` with commas between them.
    topology_optimization: str = _setting("none", optimizations)
    #: Code of the program's around every step: a ``ProcessorWrapper``, its class, a function of (name, supplier), or
    #: where one of them is to be imported from: ``MODULE:NAME``.
    processor_wrapper: Any = _setting(None, imported)
    #: Where the stores of the language's steps are that say neither ``persistent=True`` nor ``persistent=False``:
    #: ``rocksDB`` (on disk) or ``in_memory``. Tables with ``history=`` are on disk.
    default_dsl_store: str = _setting("rocksDB", choice("rocksDB", "in_memory"))
    #: What the stores on disk that steps of the language have keep of a record: ``DEFAULT``, or ``HEADERS``, too, which
    #: such steps leave empty so far. It may change between runs: what is stored is converted.
    dsl_store_format: str = _setting("DEFAULT", word("DEFAULT", "HEADERS"))
    #: Replicas of internal topics; -1: the broker's default.
    replication_factor: int = _setting(-1, number(1, besides=-1, maximum=2**15 - 1))
    #: Settings of all internal topics, by Kafka's names; one by one they are given as ``topic.retention.ms``.
    topic_config: Mapping[str, str] = field(default_factory=dict, metadata={"parse": topic_settings})
    #: Added to a window's retention for its changelog, so that clocks may differ.
    windowstore_changelog_additional_retention_ms: int = _setting(_DAY_MS, duration())
    #: Retention of window changelogs instead of the computed one, for inputs with old timestamps; -1: for ever.
    window_changelog_retention_ms: int | None = _setting(None, duration(besides=-1))
    #: Start although the outputs' retention would delete records as old as the inputs'.
    allow_expired: bool = _setting(False, flag)

    #: Stores that may lose what they have stored, with commas between their names, where the program has changed so
    #: that they cannot keep it. Without it the start is refused.
    accept_loss: str | None = _setting(None, stores)

    #: How members of the group talk to each other.
    group_protocol: str = _setting("classic", choice("classic"))
    #: Makes members static on Kafka: who comes back within ``session_timeout_ms`` has its tasks again, without a
    #: rebalance. The worker's and the thread's numbers are appended; every state directory needs an id of its own.
    group_instance_id: str | None = _setting(None, text)
    #: A member that is not heard of for this long has left the group.
    session_timeout_ms: int = _setting(45_000, duration(1, maximum=INT_MAX))
    #: How often a member says that it is there.
    heartbeat_interval_ms: int = _setting(3_000, duration(1, maximum=INT_MAX))
    #: A thread that processes this long without polling has left the group.
    max_poll_interval_ms: int = _setting(300_000, duration(1, maximum=INT_MAX))

    def __post_init__(self) -> None:
        for f in fields(self):
            given = getattr(self, f.name)
            if given is not None or f.default is not None:
                object.__setattr__(self, f.name, _parsed(f.name, given, f.metadata["parse"]))
        for name, value in held_by_application(self.client_settings).items():
            object.__setattr__(self, name, _parsed(name, value, _PARSERS[name]))
        self._check_heartbeats()
        self._check_dead_letters()
        self.check_guarantee(transactional=self.bootstrap_servers is None)

    def _check_heartbeats(self) -> None:
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise ConfigError(
                f"heartbeat_interval_ms ({self.heartbeat_interval_ms}) is not below"
                f" session_timeout_ms ({self.session_timeout_ms})",
                why="every heartbeat would come too late",
                hint="a third of session_timeout_ms or less is usual",
            )

    def _check_dead_letters(self) -> None:
        if self.errors_dead_letter_queue_topic_name is not None:
            return
        for name in _HANDLERS:
            if getattr(self, name) == "dead_letter":
                raise ConfigError(
                    f"{name} is dead_letter, but there is no dead-letter topic",
                    hint="name one with errors_dead_letter_queue_topic_name",
                )
        if self.dead_letter_dropped_records:
            raise ConfigError(
                "dead_letter_dropped_records is true, but there is no dead-letter topic",
                hint="name one with errors_dead_letter_queue_topic_name",
            )

    def check_guarantee(self, *, transactional: bool) -> None:
        """Raises ``ConfigError`` if a log with or without atomic commits cannot keep ``processing_guarantee``."""
        if self.processing_guarantee == "exactly_once_v2" and not transactional:
            raise ConfigError(
                "processing_guarantee cannot be exactly_once_v2 on Kafka yet",
                why="it needs transactions, and pystreams writes without them: a crash may repeat records",
                hint="at_least_once, or the embedded log, which is exactly-once",
            )

    @classmethod
    def of(cls, **settings: Any) -> StreamsConfig:
        """The configuration with these settings, the others at their defaults."""
        return cls.from_mapping(settings)

    @classmethod
    def from_mapping(cls, settings: Mapping[str, Any]) -> StreamsConfig:
        """The same with names as strings, dotted (``commit.interval.ms``) or underscored. None stands for the default.

        Raises ``ConfigError`` for an unknown name, with the nearest one, and for a missing ``application_id``.
        """
        given = merge_settings(settings)
        if given.get("application_id") is None:
            raise ConfigError(
                "application_id is missing",
                hint="it names the consumer group, internal topics and the state's folder",
            )
        return cls(**given)

    def override(self, *given: Mapping[str, Any]) -> StreamsConfig:
        """A copy with the settings of the sources ``given``, of which the first that has a setting wins."""
        return StreamsConfig(**merge_settings(*given, {f.name: getattr(self, f.name) for f in fields(self)}))

    def effective_commit_interval_ms(self, *, transactional: bool) -> int:
        """How often to commit on a log whose commits are atomic over outputs and offsets, or not."""
        if self.commit_interval_ms is not None:
            return self.commit_interval_ms
        return 100 if transactional else 30_000

    def in_force(self) -> dict[str, str]:
        """Every setting as text for people; of one that was not given, what holds then."""
        transactional = self.bootstrap_servers is None
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
    """The settings of all sources by their underscored names; the first source that has one wins, None has none.

    Topic settings (``topic.retention.ms``) are gathered in ``topic_config``, those of Kafka's clients
    (``producer.linger.ms``) in ``client_settings``, those of serdes (``schema.registry.url``) in ``serde_settings``,
    name by name. Raises ``ConfigError`` for an unknown name, and for one that a source gives twice (dotted and
    underscored).
    """
    return sources.merged(given, _NAMES)


def settings_from_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The settings among environment variables: ``PYSTREAMS_POLL_MS=50`` is poll_ms. Empty ones count as absent.

    Variables with the prefix that are nothing like a setting are left to others; a near miss raises ``ConfigError``, as
    does a value that is none.
    """
    return sources.from_environment(environ, _NAMES, _parsed_part)


def _parsed_part(name: str, part: str, given: Any) -> Any:
    """``part`` is that of a mapping that is given in parts."""
    if name == "client_settings" and part:
        return client_value(part, given)
    if name == "serde_settings" and part:
        return serde_value(part, given)
    return given if part else _parsed(name, given, _PARSERS[name])


def origins_of(given: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Which source each setting comes from, as ``sources.origins`` tells it."""
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
