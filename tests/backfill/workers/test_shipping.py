"""An application goes to workers with what its functions need; what cannot be sent is told before anything runs."""

from __future__ import annotations

import pickle
import threading
from dataclasses import dataclass, field

import msgspec
import pytest

from pystreams import App, TopologyTestDriver
from pystreams.backfill.workers.shipping import shipped
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


def test_structs_of_the_main_program_go_along() -> None:
    class Base(msgspec.Struct, kw_only=True):
        at: int
        note: str | None = None

    class Word(Base, rename="camel", omit_defaults=True, frozen=True, tag="word"):
        """A word of a line."""

        the_text: str
        parts: list[str] = msgspec.field(default_factory=list)

        def louder(self) -> Word:
            return Word(self.the_text.upper(), [*self.parts, "loud"], at=self.at)

        @property
        def size(self) -> int:
            return len(self.the_text)

    app = App("words")
    words = app.stream("lines", value=str).map_values(lambda line: Word(line, at=1).louder(), value=Word)
    words.to("words")
    fingerprint = app.build().build("words").fingerprint
    back = pickle.loads(shipped(app))
    assert back.build().build("words").fingerprint == fingerprint
    for one in (app, back):
        with TopologyTestDriver(one) as driver:
            driver.create_input_topic("lines", key=str, value=str).pipe_input("k", "x")
            written = driver.create_output_topic("words", key=str, value=bytes).read_value()
        assert written == b'{"type":"word","theText":"X","parts":["loud"],"at":1}'
        serde = one.build().build("words").subtopologies[0].nodes[-1].value_serde
        read = serde.deserializer("words")(written)
        assert (read.size, read.note, type(read).__doc__) == (1, None, "A word of a line.")
        with pytest.raises(AttributeError, match="immutable"):
            read.the_text = "y"


def test_what_cannot_be_sent_is_reported() -> None:
    lock = threading.Lock()

    def locked(value: str) -> str:
        with lock:
            return value

    app = App("locked")
    app.stream("lines", value=str).map_values(locked, value=str).to("out")
    with pytest.raises(AppLoadError, match="cannot be sent to worker processes"):
        shipped(app)
