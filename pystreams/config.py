"""Settings of an application: Kafka Streams' names with underscores, checked when they are given.

A setting comes from the program, the environment (``PYSTREAMS_COMMIT_INTERVAL_MS``) or the command line; the later in
this list, the stronger: ``config.override(flags, settings_from_environment(os.environ))``.
"""

# ruff: noqa: RUF009 - _setting is dataclasses.field with a shorter name
from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from pystreams.errors import ConfigError

DEFAULT_STATE_DIR: Final = Path(".pystreams/state")
DEFAULT_EMBEDDED_LOG: Final = Path(".pystreams/log.db")
ENVIRONMENT_PREFIX: Final = "PYSTREAMS_"

_KIB: Final = 1024
_MIB: Final = 1024 * _KIB
_DAY_MS: Final = 86_400_000

#: Turns what was given into the setting's value; raises ``ValueError`` that says what would be right.
_Parse = Callable[[Any], Any]


def _text(given: Any) -> str:
    if not isinstance(given, str) or not given:
        raise ValueError("text")
    return given


def _application_id(given: Any) -> str:
    if (
        not isinstance(given, str)
        or not re.fullmatch(r"[A-Za-z0-9._-]{1,200}", given)
        or given in {".", ".."}
    ):
        raise ValueError("1 to 200 letters, digits, '.', '_' or '-': it names topics, a group and a folder")
    return given


def _servers(given: Any) -> str:
    servers = (
        given.split(",") if isinstance(given, str) else given if isinstance(given, list | tuple) else [given]
    )
    servers = [s.strip() if isinstance(s, str) else "" for s in servers]
    if not servers or not all(re.fullmatch(r"\S+:\d{1,5}", s) for s in servers):
        raise ValueError("HOST:PORT, or several with commas between")
    return ",".join(servers)


def _path(given: Any) -> Path:
    if not isinstance(given, str | Path) or not str(given):
        raise ValueError("a path")
    return Path(given).expanduser()


def _flag(given: Any) -> bool:
    if isinstance(given, str):
        given = {"true": True, "false": False}.get(given.strip().lower())
    if not isinstance(given, bool):
        raise ValueError("true or false")  # noqa: TRY004 - a ValueError is what says "not this value" here
    return given


def _whole_number(given: Any) -> int | None:
    if isinstance(given, str) and re.fullmatch(r"\s*[+-]?\d(_?\d)*\s*", given):
        return int(given)
    return given if isinstance(given, int) and not isinstance(given, bool) else None


def _number(minimum: int, unit: str = "", besides: int | None = None) -> _Parse:
    limits = f"at least {minimum}" + ("" if besides is None else f", or {besides}")
    expected = f"a whole number{unit}, {limits}"

    def parse(given: Any) -> int:
        number = _whole_number(given)
        if number is None or (number < minimum and number != besides):
            raise ValueError(expected)
        return number

    return parse


def _bytes(minimum: int = 0) -> _Parse:
    return _number(minimum, " of bytes")


def _duration(minimum: int = 0, besides: int | None = None) -> _Parse:
    expected = f"a timedelta or a whole number of milliseconds, at least {minimum}"
    parse_number = _number(minimum, besides=besides)

    def parse(given: Any) -> int:
        try:
            number: int = parse_number(
                given // timedelta(milliseconds=1) if isinstance(given, timedelta) else given
            )
        except ValueError:
            raise ValueError(expected + ("" if besides is None else f", or {besides}")) from None
        return number

    return parse


def _choice(*choices: str) -> _Parse:
    def parse(given: Any) -> str:
        if given not in choices:
            raise ValueError(" or ".join(choices))
        return str(given)

    return parse


def _handler(given: Any) -> Any:
    if callable(given) or given in ("fail", "continue", "dead_letter"):
        return given
    raise ValueError(
        "fail, continue, dead_letter, or a function that takes an ErrorContext and returns a Response"
    )


_TYPES_BY_NAME: Final[dict[str, type]] = {
    t.__name__.lower(): t for t in (str, int, float, bytes, bool, uuid.UUID, dict, list)
}


def _serde(given: Any) -> Any:
    if isinstance(given, str):
        given = _TYPES_BY_NAME.get(given.lower())
    if given is None:
        raise ValueError(f"a type, a Serde, or one of the names {', '.join(_TYPES_BY_NAME)}")
    return given


def _extractor(given: Any) -> Any:
    if not callable(given) and not (isinstance(given, str) and given):
        raise ValueError(
            "the name of a timestamp extractor, or a function of (record) or (record, partition_time)"
        )
    return given


def _topic_config(given: Any) -> Mapping[str, str]:
    if not isinstance(given, Mapping) or not all(isinstance(name, str) and name for name in given):
        raise ValueError("a mapping of topic settings, such as {'retention.ms': -1}")
    return {name.replace("_", "."): _topic_value(value) for name, value in given.items()}


#: How Kafka is reached, told to all its clients alike: Java's names, and librdkafka's where Java has files of its own.
KAFKA_CONNECTION: Final = (
    "security.protocol",
    "sasl.mechanism",
    "sasl.username",
    "sasl.password",
    "sasl.kerberos.service.name",
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.key.password",
    "ssl.crl.location",
    "ssl.cipher.suites",
    "ssl.endpoint.identification.algorithm",
    "metadata.max.age.ms",
    "reconnect.backoff.ms",
    "reconnect.backoff.max.ms",
    "connections.max.idle.ms",
)
_KAFKA_CONNECTION_BY_NAME: Final = {name.replace(".", "_"): name for name in KAFKA_CONNECTION}


def _kafka_connection(given: Any) -> Mapping[str, str]:
    names = {
        name: _KAFKA_CONNECTION_BY_NAME.get(str(name).replace(".", "_"))
        for name in (given if isinstance(given, Mapping) else {None: None})
    }
    if not all(names.values()):
        raise ValueError(f"a mapping of connection settings, which are {', '.join(KAFKA_CONNECTION)}")
    return {str(names[name]): _topic_value(value) for name, value in given.items()}


def _topic_value(given: Any) -> str:
    if isinstance(given, bool):
        return str(given).lower()
    return str(given // timedelta(milliseconds=1) if isinstance(given, timedelta) else given)


def _setting(default: Any, parse: _Parse) -> Any:
    """A field; the default needs no parsing. A default of None says: None may be given, too."""
    return field(default=default, metadata={"parse": parse})


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsConfig:
    """The settings of one application. Make it with ``of`` or ``from_mapping``, vary it with ``override``.

    Durations are milliseconds, sizes bytes. Raises ``ConfigError`` for a value of the wrong kind or range, and for
    settings that contradict each other. Source of names and defaults: org.apache.kafka.streams.StreamsConfig.
    """

    #: Names the group, internal topics and the state's folder.
    application_id: str = field(metadata={"parse": _application_id})
    #: Kafka's addresses, ``host:port,host:port``; None: the embedded log.
    bootstrap_servers: str | None = _setting(None, _servers)
    #: Login, encryption and sockets of the connection to Kafka; one by one they are given by their own names.
    kafka_connection: Mapping[str, str] = field(
        default_factory=dict, repr=False, metadata={"parse": _kafka_connection}
    )
    #: The file of the embedded log.
    embedded_log: Path = _setting(DEFAULT_EMBEDDED_LOG, _path)
    #: Where tasks keep their stores, in ``<application_id>/<task>``.
    state_dir: Path = _setting(DEFAULT_STATE_DIR, _path)

    #: Threads that process records. Python runs one at a time: more processes, not more threads, make it faster.
    num_stream_threads: int = _setting(1, _number(1))
    #: How often to commit; None: 100 where a commit is atomic with the outputs (exactly once), else 30,000.
    commit_interval_ms: int | None = _setting(None, _duration())
    #: How long to wait for new records when there is nothing to do.
    poll_ms: int = _setting(100, _duration())
    #: A partition with more records waiting than this is paused.
    buffered_records_per_partition: int = _setting(1_000, _number(1))
    #: How long a task waits for records of an empty partition, so that records are processed in order of time across
    #: partitions; 0: no longer than the log has such records; -1: never.
    max_task_idle_ms: int = _setting(0, _duration(besides=-1))
    #: How long a task may keep failing for want of a broker's answer.
    task_timeout_ms: int = _setting(300_000, _duration())

    #: Budget of the record caches, shared by all threads; 0 forwards every update.
    statestore_cache_max_bytes: int = _setting(10 * _MIB, _bytes())
    #: Uncommitted writes beyond this force a commit.
    statestore_uncommitted_max_bytes: int = _setting(64 * _MIB, _bytes(1))
    #: RocksDB's cache of blocks, one for the process.
    rocksdb_block_cache_bytes: int = _setting(64 * _MIB, _bytes(64 * _KIB))
    #: RocksDB's write buffers, all together for the process.
    rocksdb_write_buffer_bytes: int = _setting(64 * _MIB, _bytes(64 * _KIB))
    #: State of a task that left this machine is deleted after this time.
    state_cleanup_delay_ms: int = _setting(600_000, _duration())

    #: Serde (or type) of keys where the topology names none.
    default_key_serde: Any = _setting(bytes, _serde)
    #: Serde (or type) of values where the topology names none.
    default_value_serde: Any = _setting(bytes, _serde)
    #: Gives a record its time; None: the record's own timestamp, and a negative one is an error.
    default_timestamp_extractor: Any = _setting(None, _extractor)
    #: Where to begin in an input without a committed offset; ``none`` refuses to start.
    auto_offset_reset: str = _setting("earliest", _choice("earliest", "latest", "none"))

    #: What to do with a record that cannot be read.
    deserialization_exception_handler: Any = _setting("fail", _handler)
    #: What to do with a record for which a function of the program raised.
    processing_exception_handler: Any = _setting("fail", _handler)
    #: What to do with a record that cannot be written.
    production_exception_handler: Any = _setting("fail", _handler)
    #: Where ``dead_letter`` handlers put records.
    errors_dead_letter_queue_topic_name: str | None = _setting(None, _text)
    #: Also put there the input records that steps drop: null keys and values, windows that have closed.
    dead_letter_dropped_records: bool = _setting(False, _flag)

    #: Which rewritings of the topology are allowed.
    topology_optimization: str = _setting("none", _choice("none"))
    #: Replicas of internal topics; -1: the broker's default.
    replication_factor: int = _setting(-1, _number(1, besides=-1))
    #: Settings of all internal topics, by Kafka's names; one by one they are given as ``topic.retention.ms``.
    topic_config: Mapping[str, str] = field(default_factory=dict, metadata={"parse": _topic_config})
    #: Added to a window's retention for its changelog, so that clocks may differ.
    windowstore_changelog_additional_retention_ms: int = _setting(_DAY_MS, _duration())
    #: Retention of window changelogs instead of the computed one, for inputs with old timestamps; -1: for ever.
    window_changelog_retention_ms: int | None = _setting(None, _duration(besides=-1))
    #: Start although the outputs' retention would delete records as old as the inputs'.
    allow_expired: bool = _setting(False, _flag)

    #: A member that is not heard of for this long has left the group.
    session_timeout_ms: int = _setting(45_000, _duration(1))
    #: How often a member says that it is there.
    heartbeat_interval_ms: int = _setting(3_000, _duration(1))
    #: A thread that processes this long without polling has left the group.
    max_poll_interval_ms: int = _setting(300_000, _duration(1))

    def __post_init__(self) -> None:
        for f in fields(self):
            given = getattr(self, f.name)
            if given is not None or f.default is not None:
                object.__setattr__(self, f.name, _parsed(f.name, given, f.metadata["parse"]))
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise ConfigError(
                f"heartbeat_interval_ms ({self.heartbeat_interval_ms}) is not below"
                f" session_timeout_ms ({self.session_timeout_ms})",
                why="every heartbeat would come too late",
                hint="a third of session_timeout_ms or less is usual",
            )
        for name in _HANDLERS:
            if getattr(self, name) == "dead_letter" and self.errors_dead_letter_queue_topic_name is None:
                raise ConfigError(
                    f"{name} is dead_letter, but there is no dead-letter topic",
                    hint="name one with errors_dead_letter_queue_topic_name",
                )

        if self.dead_letter_dropped_records and self.errors_dead_letter_queue_topic_name is None:
            raise ConfigError(
                "dead_letter_dropped_records is true, but there is no dead-letter topic",
                hint="name one with errors_dead_letter_queue_topic_name",
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

    def override(self, *sources: Mapping[str, Any]) -> StreamsConfig:
        """A copy with the settings of ``sources``, of which the first that has a setting wins."""
        return StreamsConfig(
            **merge_settings(*sources, {f.name: getattr(self, f.name) for f in fields(self)})
        )

    def effective_commit_interval_ms(self, *, transactional: bool) -> int:
        """How often to commit on a log whose commits are atomic over outputs and offsets, or not."""
        if self.commit_interval_ms is not None:
            return self.commit_interval_ms
        return 100 if transactional else 30_000

    def in_force(self) -> dict[str, str]:
        """Every setting as text for people; of one that was not given, what holds then."""
        not_given = {
            "bootstrap_servers": "none: the embedded log",
            "commit_interval_ms": self.effective_commit_interval_ms(
                transactional=self.bootstrap_servers is None
            ),
            "default_timestamp_extractor": "fail",
            "window_changelog_retention_ms": "computed from each window",
        }
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        values = {
            name: not_given.get(name, "none") if value is None else value for name, value in values.items()
        }
        return {
            name: value if isinstance(value, str) and not is_secret(name) else _shown(name, value)
            for name, value in values.items()
        }


_HANDLERS: Final = tuple(f.name for f in fields(StreamsConfig) if f.metadata["parse"] is _handler)
_NAMES: Final = frozenset(f.name for f in fields(StreamsConfig))
#: Mappings that are given in parts, and joined over all sources.
_GATHERED: Final[dict[str, _Parse]] = {"topic_config": _topic_config, "kafka_connection": _kafka_connection}

#: Names that people bring along from elsewhere, and why they are no settings here.
_REFUSED: Final = {
    "enable_auto_commit": "offsets are committed together with the state and the outputs they belong to",
    "partition_assignment_strategy": "tasks are assigned by pystreams itself, where their state is",
    "allow_auto_create_topics": "a misspelt topic would be created instead of reported",
    "group_id": "the group is named by application_id",
    "processing_guarantee": "it follows from the log: the embedded log is exactly-once always",
    "default_deserialization_exception_handler": "its name is deserialization_exception_handler",
    "default_production_exception_handler": "its name is production_exception_handler",
    "cache_max_bytes_buffering": "its name is statestore_cache_max_bytes",
    "window_size_ms": "give TimeWindowedSerde(inner, window_size_ms) where a windowed topic is read",
    "windowed_inner_class_serde": "give TimeWindowedSerde(inner, window_size_ms) where a windowed topic is read",
    "default_dsl_store": "each store says persistent=True (RocksDB) or persistent=False (memory)",
    "dsl_store_suppliers_class": "each store says persistent=True (RocksDB) or persistent=False (memory)",
    "rocksdb_config_setter": "rocksdb_block_cache_bytes and rocksdb_write_buffer_bytes set the memory budget",
}
_NOT_IMPLEMENTED: Final = """
    acceptable_recovery_lag allow_os_group_write_access application_server built_in_metrics_version
    client_id config_providers default_client_supplier
    default_list_key_serde_inner default_list_key_serde_type default_list_value_serde_inner
    default_list_value_serde_type dsl_store_format enable_metrics_push
    ensure_explicit_internal_resource_naming group_instance_id group_protocol log_summary_interval_ms
    max_warmup_replicas metadata_recovery_rebootstrap_trigger_ms
    metadata_recovery_strategy metric_reporters metrics_num_samples metrics_recording_level
    metrics_sample_window_ms num_standby_replicas probing_rebalance_interval_ms
    processing_exception_handler_global_enabled processor_wrapper_class
    rack_aware_assignment_non_overlap_cost rack_aware_assignment_strategy rack_aware_assignment_tags
    rack_aware_assignment_traffic_cost receive_buffer_bytes
    repartition_purge_interval_ms request_timeout_ms retry_backoff_ms send_buffer_bytes
    state_cleanup_dir_max_age_ms task_assignor_class upgrade_from
"""


def merge_settings(*sources: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of all sources by their underscored names; the first source that has one wins, None has none.

    Topic settings (``topic.retention.ms``) are gathered in ``topic_config``, those of the connection
    (``security.protocol``) in ``kafka_connection``, name by name. Raises ``ConfigError`` for an unknown name, and for
    one that a source gives twice (dotted and underscored).
    """
    merged: dict[str, Any] = {}
    gathered: dict[str, dict[str, str]] = {name: {} for name in _GATHERED}
    for source in sources:
        seen: set[str] = set()
        for given_name, value in source.items():
            name, part = _resolved(given_name)
            if f"{name} {part}" in seen:
                raise ConfigError(
                    f"{given_name} is given twice", hint="with dots and with underscores it is the same"
                )
            seen.add(f"{name} {part}")
            if value is None:
                continue
            if part:
                gathered[name].setdefault(part, _topic_value(value))
            elif name in gathered:
                gathered[name] = {**_parsed(name, value, _GATHERED[name]), **gathered[name]}
            else:
                merged.setdefault(name, value)
    return merged | {name: parts for name, parts in gathered.items() if parts}


def settings_from_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The settings among environment variables: ``PYSTREAMS_POLL_MS=50`` is poll_ms. Empty ones count as absent.

    Variables with the prefix that are nothing like a setting are left to others; a near miss raises ``ConfigError``.
    """
    found: dict[str, str] = {}
    for variable, value in environ.items():
        if not variable.startswith(ENVIRONMENT_PREFIX) or not value:
            continue
        name = variable.removeprefix(ENVIRONMENT_PREFIX).lower()
        try:
            _resolved(name)
        except ConfigError as error:
            if error.why or _nearest(name, cutoff=0.85):
                raise ConfigError(
                    error.what, where=f"environment variable {variable}", why=error.why, hint=error.hint
                ) from None
            continue
        found[name] = value
    return found


def _resolved(given_name: str) -> tuple[str, str]:
    """Name of the setting, and of its part if it is a mapping that is given in parts (else ``""``)."""
    name = given_name.strip().replace(".", "_").replace("-", "_")
    if name in _NAMES:
        return name, ""
    topic_setting = name.removeprefix("topic_").replace("_", ".")
    if name.startswith("topic_") and "." in topic_setting:
        return "topic_config", topic_setting
    if name in _KAFKA_CONNECTION_BY_NAME:
        return "kafka_connection", _KAFKA_CONNECTION_BY_NAME[name]
    reason = _REFUSED.get(name) or _reason_by_group(name)
    if reason:
        raise ConfigError(f"{given_name} is no setting here", why=reason)
    nearest = _nearest(name, cutoff=0.6)
    raise ConfigError(
        f"{given_name} is no setting",
        hint=f"did you mean {nearest}?" if nearest else "see the fields of pystreams.config.StreamsConfig",
    )


def _reason_by_group(name: str) -> str:
    if name in _NOT_IMPLEMENTED.split():
        return "pystreams does not implement this setting of Kafka Streams"
    if name.startswith(
        ("main_consumer_", "restore_consumer_", "global_consumer_", "consumer_", "producer_", "admin_")
    ):
        return "pystreams does not pass settings on to Kafka's clients"
    return ""


def _nearest(name: str, cutoff: float) -> str:
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, sorted(_NAMES), n=1, cutoff=cutoff)), "")


def _parsed(name: str, given: Any, parse: _Parse) -> Any:
    try:
        return parse(given)
    except ValueError as expected:
        raise ConfigError(
            f"{name} cannot be {_shown(name, given)}", why=f"expected {expected}", hint=_default_hint(name)
        ) from None


def _default_hint(name: str) -> str:
    default = next(f.default for f in fields(StreamsConfig) if f.name == name)
    return "" if default is MISSING or default is None else f"the default is {_shown(name, default)}"


_SECRET: Final = re.compile(r"password|secret|token|credential|jaas|(private|api|access|signing)[._-]?key")


def is_secret(name: str) -> bool:
    """Whether a setting's value must not be shown, by its name."""
    return _SECRET.search(name.lower()) is not None


def _shown(name: str, value: Any) -> str:
    """A value as it stands in messages; a secret is never shown."""
    if is_secret(name):
        return "[hidden]"
    if isinstance(value, Mapping):
        return ", ".join(f"{n}={_shown(n, v)}" for n, v in value.items()) or "none"
    if callable(value):
        return str(getattr(value, "__qualname__", repr(value)))
    return str(value) if isinstance(value, Path) else repr(value)
