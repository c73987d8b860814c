"""The word count that tests of commands run."""

from __future__ import annotations

WORDCOUNT = """
from pystreams import App

app = App("{id}")
app.stream("lines", value=str).flat_map_values(str.split).group_by(lambda word: word).count(
    name="counts"
).to_stream().to("word-counts")
"""


def counts(pystreams) -> dict[str, str]:
    """What it has written, as ``pystreams consume`` shows it."""
    rows = [line.split("\t") for line in pystreams("consume", "word-counts").lines]
    return {key: value for _, key, value in rows}
