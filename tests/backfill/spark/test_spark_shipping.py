"""An application goes to workers with what its functions need; what cannot be sent is told before anything runs."""

from __future__ import annotations

import pickle
import threading
from dataclasses import dataclass, field

import pytest

from pystreams import App
from pystreams.backfill.spark.shipping import shipped
from pystreams.errors import AppLoadError
from tests.backfill.programs import PROGRAMS


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_application_has_the_same_topology_afterwards(name: str) -> None:
    app = PROGRAMS[name]()
    back = pickle.loads(shipped(app))
    assert back.build().build("a").fingerprint == app.build().build("a").fingerprint


def test_classes_of_the_main_program_go_along() -> None:
    @dataclass
    class Word:
        text: str
        letters: list[str] = field(default_factory=list)
        language: str = "en"

    app = App("words")
    words = app.stream("lines", value=str).map_values(lambda line: Word(line.upper()), value=Word)
    words.to("words")
    fingerprint = app.build().build("words").fingerprint
    back = pickle.loads(shipped(app))
    assert back.build().build("words").fingerprint == fingerprint
    # Both sides go on working: the original lost nothing that it needs.
    for one in (app, back):
        serde = one.build().build("words").subtopologies[0].nodes[-1].value_serde
        kind = serde.type
        assert serde.serializer("words")(kind("x")) == b'{"text":"x","letters":[],"language":"en"}'


def test_what_cannot_be_sent_is_told() -> None:
    lock = threading.Lock()

    def locked(value: str) -> str:
        with lock:
            return value

    app = App("locked")
    app.stream("lines", value=str).map_values(locked, value=str).to("out")
    with pytest.raises(AppLoadError, match="cannot be sent to Spark's workers"):
        shipped(app)
