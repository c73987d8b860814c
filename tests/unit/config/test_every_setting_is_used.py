"""A setting of the application that is taken is in force: nothing is accepted and then ignored."""

from __future__ import annotations

import ast
import re
from dataclasses import fields
from pathlib import Path

import pystreams
from pystreams.config import StreamsConfig

PACKAGE = Path(pystreams.__file__).parent
#: They have one value so far, or are looked at where they are checked.
CHECKED = {"processing_guarantee"}


def test_every_setting_of_the_application_is_read_by_something():
    settings = {field.name for field in fields(StreamsConfig)}
    a_name = re.compile(rf"\b({'|'.join([*settings, 'effective_commit_interval_ms'])})\b")
    attributes: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        # To look at the syntax takes long; most modules name no setting at all.
        if PACKAGE / "config" not in path.parents and a_name.search(text):
            attributes |= {node.attr for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute)}
    unread = settings - attributes - CHECKED
    # A method of the configuration answers for it.
    assert unread == {"commit_interval_ms"}
    assert "effective_commit_interval_ms" in attributes
