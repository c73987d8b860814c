"""Nothing is taken silently: an unknown name is an error with the nearest one, a known one with the reason."""

from __future__ import annotations

import pytest

from pystreams.config import StreamsConfig, is_secret
from pystreams.errors import ConfigError


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
def test_an_unknown_name_is_reported_with_the_nearest(name, nearest):
    error = refusal(name)
    assert error.what == f"{name} is not a setting"
    assert error.hint == f"did you mean {nearest}?"


@pytest.mark.parametrize(
    "name,why",
    [
        ("config.providers.env.class", "not from Java classes"),
        ("metrics.context.team", "do not have Java's metrics"),
        (
            "ensure_explicit_internal_resource_naming",
            "App(..., ensure_explicit_internal_resource_naming=True)",
        ),
    ],
)
def test_what_only_java_has_is_refused_with_the_reason(name, why):
    error = refusal(name)
    assert error.what == f"{name} is not a setting here"
    assert why in error.why


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
