"""With ``group_protocol="streams"`` settings that the broker does not follow are refused, and the error says what
does."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pystreams.app import App
from pystreams.broker.embedded import EmbeddedBroker
from pystreams.broker.port import TopicSpec
from pystreams.config import StreamsConfig
from pystreams.errors import ConfigError
from pystreams.runtime.streams import Streams

OF_THE_GROUP: dict[str, tuple[Any, str]] = {
    "num_standby_replicas": (2, "streams.num.standby.replicas=2"),
    "session_timeout_ms": (60_000, "streams.session.timeout.ms=60000"),
    "heartbeat_interval_ms": (4_000, "streams.heartbeat.interval.ms=4000"),
}
MISSING = {
    "group_instance_id": "a",
    "acceptable_recovery_lag": 1,
    "max_warmup_replicas": 1,
    "probing_rebalance_interval_ms": 60_000,
    "rack_aware_assignment_strategy": "min_traffic",
    "rack_aware_assignment_traffic_cost": 1,
    "rack_aware_assignment_non_overlap_cost": 2,
    "task_assignor_class": lambda state: None,
}


def config(bootstrap_servers: str | None = "broker:9092", **settings: Any) -> StreamsConfig:
    return StreamsConfig.of(
        application_id="shop", group_protocol="streams", bootstrap_servers=bootstrap_servers, **settings
    )


def test_alone_it_is_accepted():
    assert config().group_protocol == "streams"


@pytest.mark.parametrize("name", OF_THE_GROUP)
def test_what_is_set_at_the_group_is_refused_with_the_command_that_sets_it(name: str):
    value, command = OF_THE_GROUP[name]
    with pytest.raises(ConfigError, match=f"{name} has no effect") as caught:
        config(**{name: value})
    assert f"--entity-name shop --add-config {command}" in caught.value.hint


@pytest.mark.parametrize("name", MISSING)
def test_what_brokers_do_not_do_yet_is_refused(name: str):
    with pytest.raises(ConfigError, match=f"{name} has no effect") as caught:
        config(**{name: MISSING[name]})
    assert "group_protocol=classic" in caught.value.hint


def test_tags_are_refused():
    with pytest.raises(ConfigError, match="rack_aware_assignment_tags has no effect"):
        config(rack_aware_assignment_tags="zone", client_tags={"zone": "a"})


def test_defaults_that_are_given_are_accepted():
    assert config(session_timeout_ms=45_000, num_standby_replicas=0).group_protocol == "streams"


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, (value, _) in OF_THE_GROUP.items()])
def test_on_the_embedded_log_the_settings_have_an_effect_and_are_accepted(name: str, value: int):
    on_the_embedded_log = config(bootstrap_servers=None, **{name: value})
    assert getattr(on_the_embedded_log, name) == value
    with pytest.raises(ConfigError, match=f"{name} has no effect"):
        on_the_embedded_log.override({"bootstrap_servers": "broker:9092"})


def test_a_given_broker_that_can_assign_tasks_is_asked_for_as_much(tmp_path: Path):
    app = App("shop", group_protocol="streams", num_standby_replicas=1, state_dir=tmp_path / "state")
    app.stream("in", key=str, value=int).to("out")
    with closing(EmbeddedBroker(tmp_path / "log.db")) as broker, closing(broker.admin()) as admin:
        admin.create_topics([TopicSpec("in", 1, {}), TopicSpec("out", 1, {})])
        Streams(app, broker=broker).run(until_caught_up=True)
        broker.assigns_tasks = True  # type: ignore[misc]
        with pytest.raises(ConfigError, match="num_standby_replicas has no effect"):
            Streams(app, broker=broker).run(until_caught_up=True)
