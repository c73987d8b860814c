"""A snapshot and the changelog's tail give what the whole changelog gives, whatever was done before."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st

from pystreams.serde import BYTES
from pystreams.state.snapshots.manifest import Manifest
from tests.examples import examples
from tests.unit.state.snapshots.machine_kit import Machines, content_of
from tests.unit.state.state_kit import Task, key_value, window

KEYS = st.sampled_from([b"", b"a", b"a\x00", b"b", b"\xff"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), KEYS, st.one_of(st.none(), st.binary(max_size=20))),
        st.tuples(
            st.sampled_from(["commit", "snapshot", "snapshot", "kill", "move", "move"]),
            st.just(b""),
            st.integers(0, 3),
        ),
    ),
    max_size=40,
)


@example(
    [
        *[("put", b"a", b"1"), ("commit", b"", 0), ("snapshot", b"", 0)],
        *[("put", b"a", b"2"), ("put", b"b", b"3"), ("commit", b"", 0), ("move", b"", 0)],
    ]
)
@examples(15, suppress_health_check=[HealthCheck.too_slow])
@given(steps=STEPS)
def test_a_snapshot_and_the_tail_are_the_whole_changelog(steps: list[Any]) -> None:
    specs = key_value("items", key_serde=BYTES, value_serde=BYTES), window("times", value_serde=BYTES)
    with tempfile.TemporaryDirectory() as folder, Machines(Path(folder), *specs, kept=4) as machines:
        for number, (step, key, argument) in enumerate(steps):
            if step == "put":
                machines.task["items"].put(key, argument)
                machines.task["times"].put("window", argument, 10 * number)
            elif step == "commit":
                machines.commit()
            elif step == "snapshot":
                # What is not committed is not in it.
                machines.take()
            else:
                found = machines.snapshots()
                # A machine that is killed goes on from its disk, or another one from any snapshot.
                machines.task.state.close()
                chosen = found[argument % len(found)] if step == "move" and found else None
                machines.open(machines.fetch(chosen) if chosen is not None else machines.directory)
                check(machines, chosen)


def check(machines: Machines, chosen: Manifest | None) -> None:
    from_the_changelog = Task(*machines.specs, cache_bytes=0)
    with from_the_changelog:
        everything = machines.catch_up(from_the_changelog)
        assert content_of(machines.task) == content_of(from_the_changelog)
    if chosen is not None:
        assert machines.restored == everything - chosen.offsets


def test_a_store_that_no_topic_restores_begins_empty_as_it_does_without_a_snapshot(tmp_path: Path) -> None:
    specs = key_value("items"), key_value("local", logged=False)
    with Machines(tmp_path, *specs) as machines:
        machines.task["items"].put("a", "1")
        machines.task["local"].put("a", "1")
        machines.commit()
        machines.take()
        machines.move(machines.snapshots()[0])
        assert content_of(machines.task) == {"items": [("a", "1")], "local": []}
        assert machines.restored == 0
