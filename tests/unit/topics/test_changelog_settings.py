"""What settings changelogs are made with: the library's, under those of the application, under those of the store.

Source: WindowedChangelogTopicConfig, VersionedChangelogTopicConfig, UnwindowedUnversionedChangelogTopicConfig.
"""

from __future__ import annotations

from typing import Any

import pytest

from pystreams import App, Processor, Stores
from pystreams.state.spec import StoreSpec
from pystreams.topics.topic_plan import internal_topics
from pystreams.topology.partitions import Partitioning

DAY_MS = 86_400_000
LONGEST = str(2**63 - 1)


class Idle(Processor[str, str, str, str]):
    """Has the store."""


def settings_of(store: StoreSpec, **settings: Any) -> dict[str, str]:
    app = App("app", **settings)
    app.stream("in", key=str, value=str).process(Idle, stores=[store])
    built = app.build().build("app")
    topic = "app-s-changelog"
    (spec,) = internal_topics(built, Partitioning({}, {topic: 1}, {}), app.config)
    assert spec.name == topic
    return dict(spec.config)


def keys(**given: Any) -> StoreSpec:
    return Stores.key_value_store("s", str, str, **given)


def windows(**given: Any) -> StoreSpec:
    return Stores.window_store("s", str, str, **{"size": 10, "retention": 1000, **given})


def sessions(**given: Any) -> StoreSpec:
    return Stores.session_store("s", str, str, **{"retention": 1000, **given})


def versions(**given: Any) -> StoreSpec:
    return Stores.versioned_store("s", str, str, **{"history": 1000, **given})


@pytest.mark.parametrize(
    ("store", "expected"),
    [
        (keys(), {"cleanup.policy": "compact"}),
        (windows(), {"cleanup.policy": "compact,delete", "retention.ms": str(1000 + DAY_MS)}),
        (sessions(), {"cleanup.policy": "compact,delete", "retention.ms": str(1000 + DAY_MS)}),
        (sessions(retention=2**63 - 1), {"cleanup.policy": "compact,delete", "retention.ms": LONGEST}),
        (versions(), {"cleanup.policy": "compact", "min.compaction.lag.ms": str(1000 + DAY_MS)}),
        (versions(history=2**63 - 1), {"cleanup.policy": "compact", "min.compaction.lag.ms": LONGEST}),
    ],
    ids=["keys", "windows", "sessions", "sessions for ever", "versions", "versions for ever"],
)
def test_by_the_kind_of_store(store: StoreSpec, expected: dict[str, str]) -> None:
    assert settings_of(store) == {"message.timestamp.type": "CreateTime", **expected}


@pytest.mark.parametrize("make", [keys, windows, sessions, versions])
def test_the_stores_own_come_before_the_applications(make: Any) -> None:
    everywhere = {"segment.bytes": "1000000", "min.insync.replicas": "2"}
    found = settings_of(make(changelog_config={"segment.bytes": "2000000"}), topic_config=everywhere)
    assert (found["segment.bytes"], found["min.insync.replicas"]) == ("2000000", "2")


@pytest.mark.parametrize(
    ("make", "name"),
    [(windows, "retention.ms"), (sessions, "retention.ms"), (versions, "min.compaction.lag.ms")],
)
def test_what_follows_from_the_store_only_the_store_overrides(make: Any, name: str) -> None:
    assert settings_of(make(), topic_config={name: "5"})[name] == str(1000 + DAY_MS)
    assert settings_of(make(changelog_config={name: "7"}), topic_config={name: "5"})[name] == "7"


def test_without_a_changelog_there_is_no_topic() -> None:
    app = App("app")
    app.stream("in", key=str, value=str).process(Idle, stores=[keys(logged=False)])
    assert internal_topics(app.build().build("app"), Partitioning({}, {}, {}), app.config) == []
