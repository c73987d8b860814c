"""No secret gets into a text of pystreams', also if it was given in the wrong place or in the wrong form."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from pystreams.cli.application.settings import parse_pairs
from pystreams.config import StreamsConfig, settings_from_environment
from pystreams.errors import ConfigError

SECRET = "hunter2"


@pytest.mark.parametrize(
    "name,given",
    [
        ("client_settings", f"sasl.password={SECRET}"),
        ("client_settings", [f"sasl.password={SECRET}"]),
        ("client_settings", {"sasl.password": [SECRET]}),
        ("client_settings", {"sasl.pasword": SECRET}),
        ("topic_config", {"sasl.password": SECRET, 5: "x"}),
        ("oauth_token_provider", SECRET),
        ("oauth_token_provider", (SECRET, 1e12)),
        ("sasl.oauthbearer.token.endpoint.url", f"https://alice:{SECRET}@idp/token"),
        ("bootstrap_servers", f"https://alice:{SECRET}@broker:9092"),
        ("bootstrap_servers", f"alice:{SECRET}@broker:9092"),
        ("bootstrap_servers", [f"alice:{SECRET}@broker:9092", "b:1"]),
        ("state_snapshot_dir", f"s3://alice:{SECRET}@bucket"),
        ("state_snapshot_dir", f"s3://bucket?secret_key={SECRET}"),
        ("poll_ms", f"https://alice:{SECRET}@broker:9092"),
    ],
    ids=str,
)
def test_a_mistake_is_reported_without_the_secret(name: str, given: Any):
    with pytest.raises(ConfigError) as caught:
        StreamsConfig.from_mapping({"application_id": "app", name: given})
    assert SECRET not in str(caught.value) + repr(caught.value)


@pytest.mark.parametrize("pair", [f"sasl.password {SECRET}", f"sasl_password:{SECRET}", "sasl.password"])
def test_of_a_flag_that_is_no_pair_only_the_name_is_shown(pair: str):
    with pytest.raises(ConfigError) as caught:
        parse_pairs([pair], "commit_interval_ms=1000")
    assert caught.value.what == f"'{pair[:13]}' is not a setting"


def test_a_function_is_shown_without_what_it_was_made_with():
    config = StreamsConfig.of(application_id="app", oauth_token_provider=partial(print, SECRET))
    assert SECRET not in repr(config) + str(config) + repr(config.in_force())
    assert config.in_force()["oauth_token_provider"] == "partial"


def test_the_environment_is_not_shown_either():
    with pytest.raises(ConfigError) as caught:
        settings_from_environment({"PYSTREAMS_SASL_PASWORD": SECRET})
    assert SECRET not in str(caught.value)
    assert caught.value.hint == "did you mean sasl_password?"


def test_an_address_without_a_login_is_shown_whole():
    with pytest.raises(ConfigError) as caught:
        StreamsConfig.of(application_id="app", bootstrap_servers="SASL_SSL://broker:9092")
    assert caught.value.what == "bootstrap_servers cannot be 'SASL_SSL://broker:9092'"
