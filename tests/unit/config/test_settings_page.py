"""docs/settings.md tells what the program does, and docs/differences.md where a default is not Java's."""

from __future__ import annotations

from tests.unit.config.settings_page import PAGE, tables, written
from tests.unit.config.test_client_settings_table import DIFFERENT


def test_the_page_of_settings_is_that_of_the_program():
    assert written() == tables(), "python -m tests.unit.config.settings_page writes it anew"


def test_every_default_that_is_not_javas_is_among_the_differences():
    differences = (PAGE.parent / "differences.md").read_text(encoding="utf-8")
    assert {name for name in DIFFERENT if f"`{name}`" not in differences} == set()


def test_no_secret_stands_in_an_example():
    assert "password=" not in PAGE.read_text(encoding="utf-8").replace('password="..."', "")
