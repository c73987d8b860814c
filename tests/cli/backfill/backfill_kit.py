"""The word count that tests of the backfill command run."""

from __future__ import annotations

import os

import pytest

from tests.cli.wordcount_kit import WORDCOUNT

HERE = ("--master", "none")


@pytest.fixture
def wordcount(folder, pystreams):
    """The program, its topics, and some history in them."""
    name = f"wordcount_{os.urandom(4).hex()}"
    (folder / f"{name}.py").write_text(WORDCOUNT.format(id="wordcount"), encoding="utf-8")
    pystreams("topics", "create", "lines", "word-counts", "-p", "2")
    pystreams("produce", "lines", stdin="to be or not to be\nthat is the question\n")
    return name
