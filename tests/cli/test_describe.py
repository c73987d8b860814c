"""A topology is shown without being run."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

PROGRAM = """
from pystreams import App

app = App("wordcount")
app.stream("lines", value=str).flat_map_values(str.split).group_by(lambda word: word).count(
    name="counts"
).to_stream().to("word-counts")
"""


@pytest.fixture
def program(folder):
    (folder / "described_program.py").write_text(PROGRAM, encoding="utf-8")
    return "described_program.py"


def test_text_is_what_java_prints(pystreams, program):
    described = pystreams("describe", program)
    assert described.code == 0
    assert described.lines[:4] == [
        "Topologies:",
        "   Sub-topology: 0",
        "    Source: KSTREAM-SOURCE-0000000000 (topics: [lines])",
        "      --> KSTREAM-FLATMAPVALUES-0000000001",
    ]


def test_what_run_refuses_is_remarked_beside_the_text(pystreams, folder):
    (folder / "untyped.py").write_text(
        "from pystreams import App\n"
        'app = App("untyped")\n'
        'numbers = app.stream("lines", key=str, value=int).map_values(lambda number: object())\n'
        'numbers.group_by_key().reduce(max).to_stream().to("out")\n',
        encoding="utf-8",
    )
    described = pystreams("describe", "untyped.py")
    assert described.code == 0
    assert described.lines[0] == "Topologies:"
    assert "pystreams run refuses this program: " in described.err
    assert "has no value type" in described.err


def test_records_that_come_back_for_ever_are_remarked_beside_the_text_and_at_the_start(pystreams, folder):
    (folder / "looping.py").write_text(
        "from pystreams import App\n"
        'app = App("looping")\n'
        'app.stream("orders", key=str, value=str).to("checked")\n'
        'app.stream("checked", key=str, value=str).to("orders")\n',
        encoding="utf-8",
    )
    remark = "reads checked and writes to it (checked -> orders -> checked)"
    described = pystreams("describe", "looping.py")
    assert described.code == 0
    assert remark in " ".join(described.err.split())
    ran = pystreams("run", "looping.py", "--create-topics", "--until-caught-up")
    assert ran.code == 0
    assert remark in ran.err


def test_mermaid_links_sub_topologies_through_the_repartition_topic(pystreams, program):
    lines = pystreams("describe", program, "--format", "mermaid").lines
    assert lines[0] == "flowchart TD"
    topic = next(line.split("[")[0].strip() for line in lines if "wordcount-counts-repartition" in line)
    assert any(line.endswith(f"--> {topic}") for line in lines)
    assert any(line.strip().startswith(f"{topic} -->") for line in lines)
    assert any('[("counts")]' in line for line in lines)


def test_svg_is_a_picture_with_the_names_that_topics_have_when_it_runs(pystreams, program):
    described = pystreams("describe", program, "--format", "svg")
    assert described.code == 0
    picture = ET.fromstring(described.out)
    assert picture.tag == "{http://www.w3.org/2000/svg}svg"
    texts = ["".join(one.itertext()) for one in picture.iter() if one.tag.endswith("}g")]
    assert {"Sub-topology 0", "Sub-topology 1", "lines", "wordcount-counts-repartition", "counts"} <= set(
        texts
    )


def test_code_is_python(pystreams, program):
    described = pystreams("describe", program, "--format", "code")
    assert described.code == 0
    compile(described.out, "described", "exec")
    assert "flatmapvalues" in described.out.lower()


def test_describing_leaves_nothing_behind(pystreams, program, folder):
    pystreams("describe", program, "--format", "code")
    assert {p.name for p in folder.iterdir() if p.name != "__pycache__"} == {program}


def test_an_unknown_format_is_refused(pystreams, program):
    refused = pystreams("describe", program, "--format", "pdf")
    assert refused.code == 2
    assert "mermaid" in refused.err


LATE = """
from pystreams import App, JoinWindows, SessionWindows, TimeWindows

app = App("late", window_changelog_retention_ms=-1)
visits = app.stream("visits", key=str, value=str)
grouped = visits.group_by_key()
grouped.windowed_by(TimeWindows.tumbling(60_000, grace=5_000)).count(name="minutes", step="by-minute")
grouped.windowed_by(SessionWindows.of(90_000)).count(name="sessions", step="by-session")
"""


def late_visits(pystreams, *times: str) -> None:
    for time in times:
        pystreams("produce", "visits", "-k", "=", "--timestamp", f"2026-03-01T12:{time}Z", stdin="ann=/\n")


def test_late_records_of_all_runs_are_counted_by_step_with_the_grace_that_they_needed(folder, pystreams):
    (folder / "late.py").write_text(LATE, encoding="utf-8")
    pystreams("topics", "create", "visits", "--config", "retention.ms=-1")
    described = pystreams("describe", "late", "--late")
    assert described.lines == ["by-minute\tminutes\t5 s\t0\t-\t-", "by-session\tsessions\t0 ms\t0\t-\t-"]
    for times in (["00:00", "01:10", "00:30"], ["00:20"], ["04:00", "01:20"]):
        late_visits(pystreams, *times)
        assert pystreams("run", "late", "--until-caught-up").code == 0
    described = pystreams("describe", "late", "--late")
    assert described.lines == [
        "by-minute\tminutes\t5 s\t3\t2 min 40 s\t2 min 1 s",
        "by-session\tsessions\t0 ms\t1\t2 min 40 s\t1 min 10 s",
    ]


def test_records_that_a_wrong_timestamp_made_late_need_no_grace(folder, pystreams):
    (folder / "wrong_times.py").write_text(LATE, encoding="utf-8")
    pystreams("topics", "create", "visits", "--config", "retention.ms=-1")
    late_visits(pystreams, "00:00")
    in_microseconds = "1772366400000000"
    pystreams("produce", "visits", "-k", "=", "--timestamp", in_microseconds, stdin="ann=/\n")
    late_visits(pystreams, "00:01")
    assert pystreams("run", "wrong_times", "--until-caught-up").code == 0
    described = pystreams("describe", "wrong_times", "--late")
    assert [line.split("\t")[3:] for line in described.lines] == [["1", "20492986 d 12 h", "-"]] * 2
    assert described.err.count("No grace would have kept all records of step") == 2
    assert "most likely in microseconds" in described.err


def test_an_application_without_windows_drops_no_late_records(pystreams, program):
    pystreams("topics", "create", "lines")
    described = pystreams("describe", program, "--late")
    assert (described.out, described.err.strip()) == ("", "No step drops late records.")


def test_late_records_are_asked_of_a_log_that_must_exist(pystreams, program):
    assert "log.db" in pystreams("describe", program, "--late", "--embedded-log", "nowhere/log.db").err
