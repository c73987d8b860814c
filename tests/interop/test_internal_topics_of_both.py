"""The application's own topics are those that Java makes: names, partition counts, every setting. One is ours alone:
what ran last."""

from __future__ import annotations

import pytest

from pystreams import App, TimeWindows
from pystreams.broker.port import TopicSpec
from pystreams.errors import TopicError
from pystreams.take_over.last_run import topology_topic
from tests.interop.java_side import JavaSide
from tests.kafka.support import Cluster
from tests.live.support import eventually, running

APP = "shapes"


def shapes(cluster: Cluster, **settings: object) -> App:
    """As "shapes" of ``java/Apps.java``: every kind of internal topic that both languages have."""
    app = cluster.app(APP, **settings)
    values = app.stream("in", key=str, value=int)
    values.repartition(name="five", partitions=5).group_by_key().count(name="by-five")
    values.group_by(lambda key, _: f"{key}!", key=str, repartition="by-key").reduce(int.__add__, name="sums")
    windows = TimeWindows.tumbling(10_000, grace=5_000)
    values.group_by_key().windowed_by(windows).count(name="wins")
    app.table("table", key=str, value=int, name="kept")
    return app


def create(cluster: Cluster) -> None:
    cluster.create("in", partitions=3)
    cluster.create("table", partitions=2)


def internal_topics(cluster: Cluster) -> dict[str, tuple[int, dict[str, str]]]:
    """Partition counts and all settings of the application's topics, by name."""
    topics = cluster.admin.describe_topics().values()
    return {t.name: (t.partitions, dict(t.config)) for t in topics if t.name.startswith(f"{APP}-")}


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {
            "topic.segment.ms": "600000",
            "topic.retention.ms": "7200000",
            "topic.compression.type": "zstd",
            "windowstore.changelog.additional.retention.ms": "3600000",
        },
    ],
    ids=["by default", "with topic settings"],
)
def test_topics_that_java_makes_and_ours_are_equal_setting_by_setting(
    cluster: Cluster, java: JavaSide, settings: dict[str, str]
):
    create(cluster)
    java.start("shapes", APP, cluster.path / "java", **settings)
    theirs = eventually(lambda: internal_topics(cluster))
    java.stop(APP)
    cluster.admin.delete_topics(theirs)
    running(cluster.start(shapes(cluster, **settings)))
    ours = internal_topics(cluster)
    assert ours.pop(topology_topic(APP))[0] == 1
    assert ours == theirs
    assert {name: count for name, (count, _) in ours.items()} == {
        "shapes-five-repartition": 5,
        "shapes-by-five-changelog": 5,
        "shapes-by-key-repartition": 3,
        "shapes-sums-changelog": 3,
        "shapes-wins-changelog": 3,
        "shapes-kept-changelog": 2,
    }


def refusal(cluster: Cluster) -> str:
    with pytest.raises(TopicError) as caught:
        cluster.start(shapes(cluster))
    return str(caught.value)


def test_an_internal_topic_with_another_number_of_partitions_is_refused_by_both(
    cluster: Cluster, java: JavaSide
):
    create(cluster)
    cluster.admin.create_topics([TopicSpec("shapes-sums-changelog", 4, {"cleanup.policy": "compact"})])
    said = refusal(cluster)
    assert "shapes-sums-changelog has 4 partitions, but the topology needs 3" in said
    with pytest.raises(RuntimeError, match=r"invalid partitions: expected: 3; actual: 4"):
        java.start("shapes", APP, cluster.path / "java")
    java.stop(APP)


@pytest.mark.parametrize(
    "topic, partitions, policy, why",
    [
        ("shapes-sums-changelog", 3, "compact,delete", "would lose state"),
        ("shapes-wins-changelog", 3, "delete", "would lose state"),
        ("shapes-five-repartition", 5, "compact", "would lose records that are not processed yet"),
    ],
)
def test_an_internal_topic_that_would_lose_something_is_refused_with_the_command_that_mends_it(
    cluster: Cluster, topic: str, partitions: int, policy: str, why: str
):
    create(cluster)
    cluster.admin.create_topics([TopicSpec(topic, partitions, {"cleanup.policy": policy})])
    said = refusal(cluster)
    assert f"{topic} has cleanup.policy={policy}" in said
    assert why in said
    command = said.rsplit("pystreams topics alter ", 1)[1].split()
    assert command[:2] == [topic, "--config"]
    setting, value = command[2].split("=")
    cluster.admin.alter_topic_config(topic, {setting: value})
    eventually(lambda: cluster.admin.describe_topics([topic])[topic].config[setting] == value)
    running(cluster.start(shapes(cluster)))


def test_topics_of_the_user_that_do_not_exist_are_named(cluster: Cluster):
    cluster.create("in", partitions=3)
    said = refusal(cluster)
    assert "a topic does not exist: table (read)" in said
    assert "pystreams topics create table" in said


def test_topics_to_be_joined_must_have_equal_partition_counts(cluster: Cluster):
    cluster.create("left", "out", partitions=3)
    cluster.create("right", partitions=2)
    app = cluster.app("joining")
    rights = app.table("right", key=str, value=int)
    app.stream("left", key=str, value=int).join(rights, lambda a, b: a + b, value=int).to("out")
    with pytest.raises(TopicError, match="left has 3, right has 2") as caught:
        cluster.start(app)
    assert "step KSTREAM-JOIN" in caught.value.where
    assert "repartition(partitions=" in caught.value.hint
