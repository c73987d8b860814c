"""``App``: a builder that carries its configuration."""

from __future__ import annotations

import pytest

from pystreams import App, ConfigError, TopologyError


def test_an_app_has_a_name_and_settings():
    app = App("wordcount", commit_interval_ms=1000)
    assert app.name == "wordcount"
    assert app.config.application_id == "wordcount"
    assert app.config.commit_interval_ms == 1000


def test_an_unknown_setting_is_refused_at_once():
    with pytest.raises(ConfigError, match="commit_intervall_ms"):
        App("wordcount", commit_intervall_ms=1000)


def test_a_topology_is_written_as_the_program_says():
    with pytest.raises(ConfigError, match="topology_optimization"):
        App("wordcount", topology_optimization="all")


def test_an_app_can_insist_on_given_names():
    app = App("wordcount", ensure_explicit_internal_resource_naming=True)
    app.stream("in").group_by_key().count()
    with pytest.raises(TopologyError, match="generated names"):
        app.build()
