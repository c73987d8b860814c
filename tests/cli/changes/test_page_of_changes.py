"""The page about changes tells what the tests of changes find."""

from __future__ import annotations

from tests.cli.changes.page import table, written


def test_the_table_of_the_page_is_that_of_the_tests():
    assert written() == table(), "python -m tests.cli.changes.page writes it anew"
