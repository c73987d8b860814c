"""Names of settings: the known ones, the refused ones with the reason, and suggestions for misspelt ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pystreams.config.client_setting import PREFIXES
from pystreams.config.client_settings import full_name, split_prefix
from pystreams.config.client_table import CLIENT_SETTINGS
from pystreams.config.serde_settings import known_serde_settings, serde_setting
from pystreams.errors import ConfigError
from pystreams.nearest import did_you_mean_this, nearest

_ITS_NAME: Final = "its name is {}"
_WINDOWED: Final = "give TimeWindowedSerde(inner, window_size_ms) where a windowed topic is read"
_LISTS: Final = "give ListSerde(int), or a type like list[int] for JSON, where the list is read or written"

#: Settings of Kafka Streams that pystreams does not have.
REFUSED: Final = {
    "allow_os_group_write_access": "the umask decides whether the group may write to new folders: umask 002",
    "built_in_metrics_version": "metrics have only one set of names",
    "cache_max_bytes_buffering": _ITS_NAME.format("statestore_cache_max_bytes"),
    "default_client_supplier": "pass a broker of your own as Streams(app, broker=...)",
    "default_deserialization_exception_handler": _ITS_NAME.format("deserialization_exception_handler"),
    "default_list_key_serde_inner": _LISTS,
    "default_list_key_serde_type": _LISTS,
    "default_list_value_serde_inner": _LISTS,
    "default_list_value_serde_type": _LISTS,
    "default_production_exception_handler": _ITS_NAME.format("production_exception_handler"),
    "dsl_store_suppliers_class": "its name is default_dsl_store, for all steps; a single step takes persistent=True"
    " (RocksDB) or persistent=False (memory)",
    "ensure_explicit_internal_resource_naming": "it is checked while the topology is built:"
    " App(..., ensure_explicit_internal_resource_naming=True)",
    "processor_wrapper_class": _ITS_NAME.format("processor_wrapper"),
    "rocksdb_config_setter": "rocksdb_block_cache_bytes and rocksdb_write_buffer_bytes set the memory budget",
    "upgrade_from": "all versions of pystreams speak the same protocol",
    "window_size_ms": _WINDOWED,
    "windowed_inner_class_serde": _WINDOWED,
}

#: Settings of topics. Source: org.apache.kafka.common.config.TopicConfig.
TOPIC_SETTINGS: Final = (
    "cleanup.policy",
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.type",
    "compression.zstd.level",
    "delete.retention.ms",
    "file.delete.delay.ms",
    "flush.messages",
    "flush.ms",
    "index.interval.bytes",
    "local.retention.bytes",
    "local.retention.ms",
    "max.compaction.lag.ms",
    "max.message.bytes",
    "message.downconversion.enable",
    "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms",
    "message.timestamp.type",
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms",
    "min.insync.replicas",
    "preallocate",
    "remote.log.copy.disable",
    "remote.log.delete.on.disable",
    "remote.storage.enable",
    "retention.bytes",
    "retention.ms",
    "segment.bytes",
    "segment.index.bytes",
    "segment.jitter.ms",
    "segment.ms",
    "unclean.leader.election.enable",
)
#: Prefixes of settings that pystreams does not have.
_REFUSED_PREFIXES: Final = {
    "config_providers_": CLIENT_SETTINGS["config.providers"].refused,
    "metrics_context_": CLIENT_SETTINGS["metric.reporters"].refused,
}
_TOPIC: Final = "topic_"
_CLIENT_TAG: Final = "client_tag_"
_SURE: Final = 0.85
_LIKELY: Final = 0.6


def resolved(given_name: str, fields: frozenset[str]) -> tuple[str, str]:
    """The field of ``StreamsConfig``, and the part of it if the field is a mapping that can be given in parts (else
    ``""``).

    Raises ``ConfigError`` for a name that is refused, with the reason, or unknown, with the nearest known name.
    """
    name = given_name.strip().replace(".", "_").replace("-", "_")
    if name in fields:
        return name, ""
    topic_setting = name.removeprefix(_TOPIC).replace("_", ".")
    if name.startswith(_TOPIC) and ("." in topic_setting or topic_setting in TOPIC_SETTINGS):
        _check_topic_setting(topic_setting, given_name)
        return "topic_config", topic_setting
    if name.startswith(_CLIENT_TAG):
        # The tag keeps its own dots and underscores: rack_aware_assignment_tags names it.
        return "client_tags", given_name.strip()[len(_CLIENT_TAG) :]
    client_setting = full_name(name, given_name)
    if client_setting is not None:
        return "client_settings", client_setting
    of_serdes = serde_setting(name)
    if of_serdes is not None:
        return "serde_settings", of_serdes
    why = REFUSED.get(name) or next(
        (why for prefix, why in _REFUSED_PREFIXES.items() if name.startswith(prefix)), ""
    )
    if why:
        raise ConfigError(f"{given_name} is not a setting here", why=why)
    meant = meant_setting(given_name, fields, _LIKELY)
    raise ConfigError(
        f"{given_name} is not a setting",
        hint=did_you_mean_this(meant) if meant else "docs/settings.md lists all settings",
    )


def _check_topic_setting(name: str, given_name: str) -> None:
    """Report a topic setting that looks misspelt. Others pass: brokers may have more settings than Apache Kafka, and
    refuse those that they do not know."""
    meant = _closest(name, TOPIC_SETTINGS, _SURE)
    if name not in TOPIC_SETTINGS and meant:
        raise ConfigError(f"{given_name} is not a setting", hint=did_you_mean_this(f"topic.{meant}"))


def meant_setting(given_name: str, fields: frozenset[str], cutoff: float = _SURE) -> str:
    """The setting that is probably meant, in the spelling of ``given_name``; empty if no name is near enough."""
    name = given_name.strip().replace(".", "_").replace("-", "_")
    prefix, rest = split_prefix(name)
    if prefix:
        known = [n for n, row in CLIENT_SETTINGS.items() if row.parse and PREFIXES[prefix] in row.clients]
    else:
        known = [*fields, *(n for n, row in CLIENT_SETTINGS.items() if row.parse), *known_serde_settings()]
    meant = _closest(rest, sorted({n.replace(".", "_") for n in known}), cutoff)
    if not meant:
        return ""
    meant = prefix.replace(".", "_") + meant
    return meant.replace("_", ".") if "." in given_name else meant


def _closest(name: str, names: Iterable[str], cutoff: float) -> str:
    return next(iter(nearest(name, names, most=1, cutoff=cutoff)), "")
