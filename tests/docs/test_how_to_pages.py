"""What how-to pages show besides commands is true: figures, units of systemd, names of settings, programs of others."""

from __future__ import annotations

import configparser
import re
from dataclasses import fields

import pytest

from pystreams.cli.main import command_for
from pystreams.config import StreamsConfig
from pystreams.config.client_table import CLIENT_SETTINGS
from pystreams.metrics.catalogue import MEANINGS
from tests.docs.manual import DOCS, Block, sections

HOW_TO = DOCS / "how-to"


def blocks(page: str, info: str) -> list[Block]:
    return [block for section in sections(HOW_TO / page) for block in section.blocks if block.info == info]


def rows(text: str, columns: int) -> list[list[str]]:
    """The rows of all tables with so many columns."""
    cells = ([cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines())
    return [row for row in cells if len(row) == columns]


def test_figures_for_sizing_are_those_of_the_benchmarks() -> None:
    measured = {
        (job, threads): (rate, cpu, peak)
        for job, peer, threads, rate, _, _, cpu, _, _, _, peak, *_ in rows(
            (DOCS / "benchmarks.md").read_text(encoding="utf-8"), 13
        )
        if peer == "pystreams"
    }
    shown = {
        (job, workers): (rate, cpu, peak)
        for job, workers, rate, cpu, peak in rows((HOW_TO / "sizing.md").read_text(encoding="utf-8"), 5)
        if workers.isdigit()
    }
    assert shown == measured


def test_the_unit_starts_the_application_and_names_exit_codes_that_another_start_does_not_mend() -> None:
    (unit,) = blocks("deploying.md", "ini")
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(unit.text)
    service = parser["Service"]
    assert " run shop " in service["ExecStart"]
    assert service["RestartPreventExitStatus"].split() == ["2", "3"]
    assert service["KillSignal"] == "SIGTERM"


def options() -> set[str]:
    """The options of ``run`` that the environment may give, without the prefix."""
    known = command_for([]).commands
    variables = [
        str(option.envvar) for name in ("run", "get") for option in known[name].params if option.envvar
    ]
    return {variable.removeprefix("PYSTREAMS_").lower() for variable in variables}


def test_every_variable_of_the_environment_is_a_setting() -> None:
    known = {field.name for field in fields(StreamsConfig)} | {"sasl_password"} | options()
    named = {
        name.lower()
        for page in HOW_TO.glob("*.md")
        for name in re.findall(r"PYSTREAMS_(\w+)", page.read_text(encoding="utf-8"))
    }
    assert named
    assert named - known == set()


def test_the_program_for_faust_is_one() -> None:
    pytest.importorskip("faust", exc_type=ImportError)
    (program,) = blocks("from-faust.md", "python no-run")
    names: dict[str, object] = {"__name__": "shop"}
    exec(compile(program.text, "from-faust.md", "exec"), names)
    assert {"app", "orders", "revenue", "add_up"} <= set(names)


def test_the_program_for_quix_is_python() -> None:
    (program,) = blocks("from-quix.md", "python no-run")
    compile(program.text, "from-quix.md", "exec")


def test_the_page_on_tuning_names_settings_metrics_and_defaults_that_there_are() -> None:
    page = (HOW_TO / "tuning.md").read_text(encoding="utf-8")
    defaults = {field.name: field.default for field in fields(StreamsConfig)}
    clients = {
        name: known.default_for(client)
        for name, known in CLIENT_SETTINGS.items()
        for client in reversed(known.clients)
    }
    metrics = {name for _, name in MEANINGS}
    for text in re.findall(r"`([^`]+)`", page):
        name, has_value, value = text.partition("=")
        if has_value and not value:  # an argument of a step
            continue
        if re.fullmatch(r"[a-z]+(_[a-z]+)+", name):
            assert name in defaults, text
        elif re.fullmatch(r"[a-z]+(-[a-z0-9]+)+", name):
            assert name in metrics, text
        elif re.fullmatch(r"[a-z]+(\.[a-z]+)+", name) and not name.startswith("topic."):
            assert re.sub(r"^(main\.consumer|producer)\.", "", name) in clients, text
    shown = re.findall(r"^\| `([\w.]+)` \((\d+)\)", page, flags=re.MULTILINE)
    assert len(shown) == 4
    for name, default in shown:
        assert str(defaults.get(name, clients.get(name))) == default, name


def test_figures_on_the_page_on_tuning_are_those_of_the_pages_that_it_names() -> None:
    tuning = " ".join((HOW_TO / "tuning.md").read_text(encoding="utf-8").split())
    sizing = (HOW_TO / "sizing.md").read_text(encoding="utf-8")
    by_job: dict[str, dict[str, tuple[float, float]]] = {}
    times = []
    for job, workers, rate, cpu, peak in rows(sizing, 5):
        if workers.isdigit():
            times.append(float(cpu))
            by_job.setdefault(job, {})[workers] = float(rate.replace(",", "")), float(peak)
    rates, peaks = (
        [round(of["2"][column] / of["1"][column], 1) for of in by_job.values()] for column in (0, 1)
    )
    assert f"do {min(rates)} to {max(rates)} times as much" in tuning
    assert f"take {min(peaks)} to {max(peaks)} times the memory" in tuning
    assert f"from {min(times)} to {max(times)} µs" in tuning
    (many,) = [row for row in rows(sizing, 9) if row[:3] == ["embedded log", "200", "50"]]
    assert f"10,000 of them start in {many[3]}, and again in {many[4]}" in tuning
