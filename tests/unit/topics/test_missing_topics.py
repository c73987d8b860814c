"""A topic that the program names and that does not exist is refused with the one that was probably meant."""

from __future__ import annotations

from typing import cast

import pytest

from pystreams import App
from pystreams.broker.port import Admin
from pystreams.errors import TopicError
from pystreams.topics.topic_plan import plan_topics


class Topics:
    """A log with these topics."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def partition_counts(self) -> dict[str, int]:
        return dict.fromkeys(self._names, 1)


def refusal(app: App, *existing: str) -> TopicError:
    with pytest.raises(TopicError) as caught:
        plan_topics(cast(Admin, Topics(*existing)), app.build().build("shop"), app.config, "a log")
    return caught.value


def test_a_topic_is_suggested_for_a_misspelt_one():
    app = App("shop")
    app.stream("ordres").to("paid")
    error = refusal(app, "orders", "paid", "customers")
    assert error.what == "a topic does not exist: ordres (read)"
    assert error.hint.startswith("did you mean orders?; or create it ")
    assert "pystreams topics create ordres" in error.hint


def test_of_several_topics_each_has_its_suggestion():
    app = App("shop")
    app.stream("ordres").to("piad")
    app.stream("unlike").foreach(print)
    hint = refusal(app, "orders", "paid").hint
    assert hint.startswith("ordres: did you mean orders?; piad: did you mean paid?; or create them ")


def test_a_topic_that_the_program_names_itself_is_not_suggested():
    app = App("shop")
    app.stream("orders").to("orders-2")
    assert refusal(app, "orders").hint.startswith("create it ")
