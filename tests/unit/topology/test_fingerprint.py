"""What makes two topologies the same: everything but the code of functions."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from pystreams import JsonSerde, StreamsBuilder, TimeWindows


@dataclass
class One:
    x: int


@dataclass
class Two:
    x: int


def fingerprint(**changed: Any) -> str:
    given: dict[str, Any] = {
        "topic": "in",
        "value": int,
        "mapper": lambda v: v,
        "size": 10,
        "grace": 0,
        "name": "n",
        "persistent": True,
        "cached": True,
        "logged": True,
        "out": "out",
        "application": "app",
    } | changed
    builder = StreamsBuilder()
    grouped = (
        builder.stream(given["topic"], key=str, value=given["value"])
        .map_values(given["mapper"], value=given["value"])
        .group_by_key()
    )
    windows = TimeWindows.tumbling(given["size"], grace=given["grace"])
    store = {name: given[name] for name in ("name", "persistent", "cached", "logged")}
    grouped.windowed_by(windows).count(**store).to_stream().to(given["out"])
    return builder.build().build(given["application"]).fingerprint


def test_it_is_the_same_in_every_process():
    program = (
        "from pystreams import StreamsBuilder, JsonSerde\n"
        "builder = StreamsBuilder()\n"
        "builder.stream('in', key=str, value=dict[str, int]).group_by_key().count(name='n').to_stream().to('out')\n"
        "print(builder.build().build('app').fingerprint)\n"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(seen) == 1
    assert len(seen.pop().strip()) == 64


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"mapper": lambda v: v + 1}, id="another function"),
        {"mapper": abs},
        {"cached": False},
    ],
    ids=str,
)
def test_code_and_caching_do_not_count(change):
    assert fingerprint(**change) == fingerprint()


@pytest.mark.parametrize(
    "change",
    [
        {"topic": "other"},
        {"value": str},
        {"size": 20},
        {"grace": 5},
        {"name": "m"},
        {"persistent": False},
        {"logged": False},
        {"out": "elsewhere"},
    ],
    ids=str,
)
def test_what_decides_the_content_of_topics_and_stores_counts(change):
    assert fingerprint(**change) != fingerprint()


@dataclass
class Renamed:
    y: int


@dataclass
class WithDefault:
    x: int = 0


def test_the_fields_of_structured_values_count():
    kinds = (One, Renamed, WithDefault, dict[str, int], dict[str, str], list)
    assert len({fingerprint(value=kind) for kind in kinds}) == len(kinds)


def test_names_of_classes_do_not_count():
    assert fingerprint(value=One) == fingerprint(value=Two)
    assert fingerprint(value=One) == fingerprint(value=JsonSerde(One))
