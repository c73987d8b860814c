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


def test_a_topology_is_optimised_as_the_settings_say():
    def changelogs(optimization):
        app = App("prices", topology_optimization=optimization)
        app.table("prices", key=str, value=int, name="prices-by-article")
        return [topic for sub in app.build().build("prices").subtopologies for topic in sub.changelogs]

    assert changelogs("none") == ["prices-by-article"]
    assert changelogs("all") == []


def test_an_app_can_insist_on_given_names():
    app = App("wordcount", ensure_explicit_internal_resource_naming=True)
    app.stream("in").group_by_key().count()
    with pytest.raises(TopologyError, match="generated names"):
        app.build()
