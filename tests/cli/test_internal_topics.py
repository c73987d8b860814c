"""The commands know an application's own topics by their names, as Kafka's tools do."""

from __future__ import annotations

import pytest

from pystreams.log.topics import is_internal


@pytest.mark.parametrize(
    ("name", "internal"),
    [
        ("app-counts-changelog", True),
        ("app-by-word-repartition", True),
        ("app-orders-subscription-registration-topic", True),
        ("app-orders-subscription-response-topic", True),
        ("app-KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-0000000006-topic", True),
        ("app-KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-0000000014-topic", True),
        ("app-orders-topic", False),
        ("subscriptions", False),
    ],
)
def test_by_its_name(name: str, internal: bool) -> None:
    assert is_internal(name) is internal
