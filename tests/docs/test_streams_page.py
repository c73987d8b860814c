"""The page of the client names all that ``Streams`` has; its picture has the states and transitions of the code."""

from __future__ import annotations

import inspect
import re

from pystreams import Streams
from pystreams.runtime.client_state import CLIENT_SUCCESSORS
from pystreams.runtime.uncaught import UncaughtExceptionResponse
from tests.docs.manual import DOCS

PAGE = (DOCS / "streams.md").read_text(encoding="utf-8")

#: What the client's own threads call.
OF_THREADS = {"application_shutdown", "housekeeping", "thread_changed", "thread_ended", "thread_failed"}


def test_every_method_is_in_the_table() -> None:
    table = PAGE.partition("## All methods")[2]
    public = {name for name, _ in inspect.getmembers(Streams) if not name.startswith("_")} - OF_THREADS
    assert {name for name in public if not re.search(rf"`{name}\b", table)} == set()


def test_the_picture_has_the_transitions_of_the_code() -> None:
    drawn = set(re.findall(r"^ {4}(\w+) --> (\w+)", PAGE, flags=re.MULTILINE))
    assert drawn == {(old.name, new.name) for old, after in CLIENT_SUCCESSORS.items() for new in after}


def test_every_response_is_named() -> None:
    responses = {response.name for response in UncaughtExceptionResponse}
    assert {name for name in responses if f"`{name}`" not in PAGE} == set()
