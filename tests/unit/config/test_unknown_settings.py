"""Nothing is taken silently: an unknown name is an error with the nearest one, a known one with the reason."""

from __future__ import annotations

import pytest

from pystreams.config import StreamsConfig, is_secret
from pystreams.config.client_table import CLIENT_SETTINGS
from pystreams.errors import ConfigError

#: StreamsConfig.configDef().names() of Kafka Streams 4.3.1.
JAVA_NAMES = """
acceptable.recovery.lag allow.os.group.write.access application.id application.server bootstrap.servers
buffered.records.per.partition built.in.metrics.version cache.max.bytes.buffering client.id commit.interval.ms
config.providers connections.max.idle.ms default.client.supplier default.deserialization.exception.handler
default.dsl.store default.key.serde default.list.key.serde.inner default.list.key.serde.type
default.list.value.serde.inner default.list.value.serde.type default.production.exception.handler
default.timestamp.extractor default.value.serde deserialization.exception.handler dsl.store.format
dsl.store.suppliers.class enable.metrics.push ensure.explicit.internal.resource.naming
errors.dead.letter.queue.topic.name group.protocol log.summary.interval.ms max.task.idle.ms max.warmup.replicas
metadata.max.age.ms metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy metric.reporters
metrics.num.samples metrics.recording.level metrics.sample.window.ms num.standby.replicas num.stream.threads poll.ms
probing.rebalance.interval.ms processing.exception.handler processing.exception.handler.global.enabled
processing.guarantee processor.wrapper.class production.exception.handler rack.aware.assignment.non_overlap_cost
rack.aware.assignment.strategy rack.aware.assignment.tags rack.aware.assignment.traffic_cost receive.buffer.bytes
reconnect.backoff.max.ms reconnect.backoff.ms repartition.purge.interval.ms replication.factor request.timeout.ms
retry.backoff.ms rocksdb.config.setter security.protocol send.buffer.bytes state.cleanup.delay.ms
state.cleanup.dir.max.age.ms state.dir statestore.cache.max.bytes task.assignor.class task.timeout.ms
topology.optimization upgrade.from window.size.ms windowed.inner.class.serde
windowstore.changelog.additional.retention.ms
""".split()  # noqa: SIM905 - as Java prints them


def refusal(name: str, value: object = 1) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        StreamsConfig.from_mapping({"application_id": "app", name: value})
    return caught.value


@pytest.mark.parametrize(
    "name,nearest",
    [
        ("comit_interval_ms", "commit_interval_ms"),
        ("num.stream.thread", "num.stream.threads"),
        ("store_cache_max_bytes", "statestore_cache_max_bytes"),
        ("topic_optimization", "topology_optimization"),
    ],
)
def test_an_unknown_name_is_told_with_the_nearest(name, nearest):
    error = refusal(name)
    assert error.what == f"{name} is no setting"
    assert error.hint == f"did you mean {nearest}?"


@pytest.mark.parametrize("name", JAVA_NAMES)
def test_every_setting_of_kafka_streams_is_implemented_or_refused_with_a_reason(name):
    if name.replace(".", "_") not in StreamsConfig.__dataclass_fields__ and name not in CLIENT_SETTINGS:
        error = refusal(name)
        assert error.what == f"{name} is no setting here"
        assert error.why


@pytest.mark.parametrize(
    "name",
    [
        "enable.auto.commit",
        "partition.assignment.strategy",
        "consumer.key.deserializer",
        "producer.interceptor.classes",
    ],
)
def test_settings_that_are_not_the_users_to_choose_are_refused_with_a_reason(name):
    assert refusal(name).why


@pytest.mark.parametrize(
    "name",
    [
        "sasl.password",
        "ssl_key_password",
        "oauth_client_secret",
        "sasl.jaas.config",
        "api_key",
        "topic.api.key",
    ],
)
def test_a_secret_is_never_shown(name):
    assert is_secret(name)
    try:
        shown = repr(StreamsConfig.from_mapping({"application_id": "app", name: "hunter2"}).in_force())
    except ConfigError as error:
        shown = str(error)
    assert "hunter2" not in shown
