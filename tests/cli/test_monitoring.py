"""``pystreams monitoring`` prints the dashboard and the alert rules that come with the package."""

from __future__ import annotations

import json

import yaml

from tests.serving.promql_kit import ALERTS, DASHBOARD


def test_the_dashboard_is_printed_as_it_is(pystreams):
    shown = pystreams("monitoring", "dashboard")
    assert (shown.code, shown.err) == (0, "")
    assert shown.out == DASHBOARD.read_text(encoding="utf-8")
    assert json.loads(shown.out)["panels"]


def test_the_alert_rules_are_printed_as_they_are(pystreams):
    shown = pystreams("monitoring", "alerts")
    assert (shown.code, shown.err) == (0, "")
    assert shown.out == ALERTS.read_text(encoding="utf-8")
    (group,) = yaml.safe_load(shown.out)["groups"]
    assert group["rules"]
