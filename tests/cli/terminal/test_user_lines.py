"""An error shows the lines of the program that it came from, and nobody else's."""

from __future__ import annotations

import traceback
from pathlib import Path

from pystreams.cli.terminal.user_lines import user_lines


def error_of(function):
    try:
        function()
    except Exception as error:  # noqa: BLE001 - whatever it is
        return error
    raise AssertionError("it did not raise")


def read_a_file_that_is_not_there():
    Path("nowhere/at/all").read_text(encoding="utf-8")


def test_lines_of_the_standard_library_are_left_out():
    shown = user_lines(error_of(read_a_file_that_is_not_there))
    assert 'Path("nowhere/at/all").read_text' in shown
    assert "pathlib" not in shown


def test_a_traceback_of_another_process_is_shown_as_text():
    error = error_of(read_a_file_that_is_not_there)
    text = "".join(traceback.format_exception(error))
    assert user_lines(RuntimeError(text)) == user_lines(error)


def test_lines_of_arrow_and_spark_are_left_out():
    from pyarrow import fs

    shown = user_lines(error_of(lambda: fs.LocalFileSystem().open_input_file("nowhere")))
    assert "open_input_file" in shown
    assert "pyarrow/" not in shown


def test_without_an_error_there_is_nothing_to_show():
    assert user_lines(None) == ""
