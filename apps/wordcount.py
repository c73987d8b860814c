"""Word count: the first program of every stream processor.

pystreams topics create lines word-counts
echo 'to be or not to be' | pystreams produce lines
pystreams run apps.wordcount --until-caught-up
pystreams consume word-counts
"""

from __future__ import annotations

from pystreams import App

app = App("wordcount")

(
    app.stream("lines", value=str)
    .flat_map_values(str.split)
    .group_by(lambda word: word)
    .count(name="counts")
    .to_stream()
    .to("word-counts")
)
