"""The benchmarks run: each case does its work once. How fast is for people to judge (``make bench-micro``)."""

from __future__ import annotations

from importlib import import_module

import pytest

from tests.benchmarks.micro.__main__ import SECTIONS, main
from tests.benchmarks.micro.measure import REFERENCE_NS, Case, Result, measure, table


@pytest.mark.parametrize("section", SECTIONS)
def test_every_case_of_a_section_runs(section):
    with import_module(f"tests.benchmarks.micro.{section}").cases() as cases:
        for case in cases:
            for step in (case.before, case.baseline, case.run):
                if step is not None:
                    step()
            assert case.operations > 0


def test_a_baseline_is_subtracted_and_a_ratio_is_held_against_the_budget():
    def work() -> None:
        sum(range(20_000))

    alone, nothing = measure(
        [Case("alone", work, 1), Case("nothing", work, 1, 100.0, baseline=work)], rounds=5
    )
    assert alone.ratio > 0
    assert abs(nothing.ns) < alone.ns
    shown = table("Title", [Result(Case("half", work, 1, REFERENCE_NS), 1_234.5, 0.5)])
    assert shown.splitlines()[0] == "Title"
    assert shown.splitlines()[2].split() == ["half", "1,234", "0.50", "70", "50%"]


def test_an_unknown_section_is_reported(capsys):
    assert main(["cach"]) == 2
    assert "there are codecs, chain, order, cache, store" in capsys.readouterr().err
