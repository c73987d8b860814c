"""Finds the table that a reader's options name: a topic or a store, and its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from pystreams.backfill.application import LoadedApplication, NamedApplication
from pystreams.backfill.columns.key_spans import Kind, Spans, spans_of
from pystreams.backfill.columns.parts import ColumnPart, NamedPart, Parts
from pystreams.backfill.columns.store_columns import StoreColumns
from pystreams.backfill.locations import absolute
from pystreams.backfill.sources import EmbeddedSource, KafkaSource, ParquetSource, Source
from pystreams.backfill.tables.log_tables import ChangelogTable, TopicTable
from pystreams.backfill.tables.state_table import SnapshotTable, StateTable, is_snapshot
from pystreams.backfill.tables.table import Table
from pystreams.errors import ConfigError, StateError
from pystreams.nearest import did_you_mean
from pystreams.serde import BYTES
from pystreams.state.spec import StoreSpec
from pystreams.topology.built import SubTopology
from pystreams.topology.names import changelog_topic

_KAFKA: Final = "kafka."

#: The description of each option, by name.
OPTIONS: Final[Mapping[str, str]] = {
    "topic": "the topic to read",
    "store": "the store to read",
    "application": "module:attribute of the application that a store belongs to, which defines its types and windows",
    "application_id": "the application's id, if `application` does not have one, or to override it",
    "bootstrap_servers": "Kafka's addresses; settings of the client are kafka.NAME (kafka.security.protocol)",
    "embedded_log": "the file of an embedded log",
    "path": "of a topic: an archive; of a store: a state directory, or a snapshot",
    "key_type": "str, json, uuid, bool, int, int32, int16, float or float32",
    "value_type": "the same",
    "windowed": "true: the store's keys end with a window; session: they end with a session (not needed with "
    "`application`)",
    "isolation_level": "read_committed (the default) or read_uncommitted, of Kafka",
}

#: By what the option ``windowed`` says.
_SPANS: Final[Mapping[str, Kind]] = {"false": "", "true": "windows", "session": "sessions"}


def table_of(options: Mapping[str, str]) -> Table:
    """Raises ``ConfigError`` for options that are unknown, missing, or contradict each other; ``AppLoadError``."""
    given = {name.lower(): value for name, value in options.items()}
    if given.get("path"):
        # Workers may run in other folders.
        given["path"] = absolute(given["path"])
    for name in given:
        if name not in OPTIONS and not name.startswith(_KAFKA):
            raise ConfigError(
                f"there is no option {name}",
                why=f"there are {', '.join(OPTIONS)}, and {_KAFKA}NAME",
                hint=did_you_mean(name, OPTIONS),
            )
    if ("topic" in given) == ("store" in given):
        raise ConfigError("give one of the options topic and store")
    if "topic" in given:
        return TopicTable(_source(given, "topic"), given["topic"], _parts(given, Parts()))
    return _store(given)


def _source(given: Mapping[str, str], of: str) -> Source:
    """The log, or the archive of a topic."""
    _require_place(given, of)
    if "bootstrap_servers" in given:
        settings = {n.removeprefix(_KAFKA): v for n, v in given.items() if n.startswith(_KAFKA)}
        level = given.get("isolation_level", "read_committed")
        if level not in ("read_committed", "read_uncommitted"):
            raise ConfigError(
                f"isolation_level cannot be {level!r}", hint="read_committed or read_uncommitted"
            )
        return KafkaSource(
            given["bootstrap_servers"],
            settings,
            "read_committed" if level == "read_committed" else "read_uncommitted",
        )
    if "embedded_log" in given:
        return EmbeddedSource(given["embedded_log"])
    return ParquetSource(given["path"], topic=given.get("topic"))


def _require_place(given: Mapping[str, str], of: str) -> None:
    places = [name for name in ("bootstrap_servers", "embedded_log", "path") if given.get(name)]
    if len(places) != 1:
        raise ConfigError(
            f"give the place of the {of}, and only one",
            why=f"given: {', '.join(places) or 'none'}",
            hint="one of the options bootstrap_servers, embedded_log and path",
        )


@dataclass(frozen=True, slots=True)
class _Owner:
    """A store as its application has it."""

    application: NamedApplication
    loaded: LoadedApplication
    sub: SubTopology
    spec: StoreSpec

    @property
    def parts(self) -> Parts:
        return Parts.of(self.application, "store", self.spec.name)

    @property
    def spans(self) -> Spans:
        return spans_of(self.spec.kind, self.spec.window_size_ms)


def _store(given: Mapping[str, str]) -> Table:
    owner = _owner(given)
    parts = _parts(given, owner.parts if owner else Parts())
    if "path" in given:
        _require_place(given, "store")
    if "path" in given and is_snapshot(given["path"]):
        return SnapshotTable.of(given["path"], given["store"], parts, owner.spans if owner else None)
    columns = StoreColumns(parts, _spans(given) if owner is None else owner.spans)
    application_id = given.get("application_id") or (owner.loaded.config.application_id if owner else "")
    if not application_id:
        raise ConfigError(
            f"the options do not name the application of store {given['store']}",
            hint="give application (module:attribute), or application_id",
        )
    if "path" in given:
        if owner is None:
            raise ConfigError(
                "a state directory does not define the types of its stores",
                where=f"store {given['store']}, path {given['path']}",
                hint="give application (module:attribute) beside path",
            )
        # Only bytes are read: serdes may be nothing that can be sent to a worker.
        spec = replace(owner.spec, key_serde=BYTES, value_serde=BYTES, cached=False)
        return StateTable(given["path"], application_id, owner.sub.id, spec, columns)
    changelog = changelog_topic(application_id, given["store"])
    if owner is not None:
        changelog = owner.sub.changelogs.get(given["store"]) or owner.spec.source_topic or ""
        if not changelog:
            raise StateError(
                f"store {given['store']} has no changelog", hint="read it from a state directory: path"
            )
    source = _source(given, "changelog")
    if owner is None:
        return ChangelogTable(source, changelog, columns)
    return ChangelogTable(source, changelog, columns, owner.spec.retention_ms, owner.spec.history_ms)


def _owner(given: Mapping[str, str]) -> _Owner | None:
    if "application" not in given:
        return None
    settings = {"application_id": given["application_id"]} if "application_id" in given else {}
    application = NamedApplication(given["application"], settings)
    loaded = application.load()
    for sub in loaded.built.subtopologies:
        for spec in sub.stores:
            if spec.name == given["store"]:
                return _Owner(application, loaded, sub, spec)
    known = sorted(spec.name for spec in loaded.built.stores)
    for store in loaded.built.global_stores:
        if store.spec.name == given["store"]:
            raise ConfigError(
                f"store {given['store']} of application {given['application']} is a global one",
                why="it has no changelog; a topic fills it",
                hint=f"read that topic: option topic, {store.topic}",
            )
    raise ConfigError(
        f"application {given['application']} has no store {given['store']}",
        why=f"it has {', '.join(known) or 'none'}",
    )


def _spans(given: Mapping[str, str]) -> Spans:
    text = given.get("windowed", "false").lower()
    if text not in _SPANS:
        raise ConfigError(f"windowed cannot be {text!r}", hint="true, false or session")
    return Spans(_SPANS[text])


def _parts(given: Mapping[str, str], known: Parts) -> Parts:
    """Types that are named count more than those of the application; ``bytes`` leaves a column out."""
    parts = Parts(_part(given.get("key_type"), known.key), _part(given.get("value_type"), known.value))
    parts.fields()
    return parts


def _part(name: str | None, known: ColumnPart | None) -> ColumnPart | None:
    if name is None:
        return known
    return None if name == "bytes" else NamedPart(name)
