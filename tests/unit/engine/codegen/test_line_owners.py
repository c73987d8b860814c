"""Each line of generated code knows the step that it belongs to, and what it does."""

from __future__ import annotations

import re

from pystreams import App
from pystreams.dsl.builder import build_topology
from pystreams.engine.codegen import LineOwner, Work, compile_nodes


def compiled():
    app = App("owners")
    (
        app.stream("lines", value=str)
        .flat_map_values(str.split, step="words")
        .filter(bool, step="full")
        .group_by(lambda word: word)
        .count(name="counts")
        .to_stream(step="rows")
        .to("counts", step="out")
    )
    app.stream("other", value=str).peek(print, step="show")
    built = build_topology(app, app.config)
    return [compile_nodes(sub.nodes, f"<owners {sub.id}>") for sub in built.subtopologies]


def test_a_line_that_names_a_step_in_a_comment_belongs_to_it():
    seen = set()
    for code in compiled():
        lines = code.source.splitlines()
        assert len(lines) == len(code.owners)
        for line, owner in zip(lines, code.owners, strict=True):
            named = re.search(r"\S  # (\S+)$", line)
            if named:
                assert owner.step == named[1], line
                seen.add(owner.step)
    assert {"words", "full", "rows", "out", "show"} <= seen


def test_the_lines_of_a_sink_encode_and_send():
    lines = {
        line.strip().partition("(")[0]: owner
        for code in compiled()
        for line, owner in zip(code.source.splitlines(), code.owners, strict=True)
        if owner.step == "out"
    }
    assert lines["key_bytes = None if key is None else key_of_out"] == LineOwner("out", Work.ENCODE)
    assert lines["send"] == LineOwner("out", Work.PRODUCE)


def test_lines_that_call_functions_of_the_program_say_so():
    for code in compiled():
        for line, owner in zip(code.source.splitlines(), code.owners, strict=True):
            if "= words(" in line or "show(" in line:
                assert owner.work is Work.FUNCTION, line
