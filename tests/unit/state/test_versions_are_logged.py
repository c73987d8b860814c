"""What a versioned store says that its changelog holds, put in the order of time, gives a store like it."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from pystreams.state.store import Logged
from pystreams.state.stores.factory import Stores
from tests.unit.state.state_kit import Task, batch_of

SPEC = Stores.versioned_store("store", str, str, history=20, segment=6, persistent=False)
KEYS = ("", "a", "b")

Put = tuple[str, str | None, int]
PUTS = st.lists(
    st.tuples(st.sampled_from(KEYS), st.sampled_from(("x", "y", None)), st.integers(0, 60)), max_size=25
)


def _in_order(logged: list[Logged]) -> list[Any]:
    return sorted(logged, key=lambda entry: (entry[2], entry[0]))


def _history(task: Task) -> dict[str, Any]:
    """All that can be asked of a store: each key's value as of each time."""
    return {key: [task.store.get(key, as_of=time) for time in range(62)] for key in KEYS}


@given(PUTS, PUTS)
@example([("a", "x", 5), ("a", None, 5)], [])
@example([("b", None, 1), ("b", "x", 1)], [("b", "x", 0)])
@example([("", "x", 5), ("", None, 9), ("a", "y", 30), ("a", None, 30)], [("b", "x", 8)])
def test_versions_and_what_is_put_later_are_the_same(first: list[Put], later: list[Put]) -> None:
    with Task(SPEC) as task, Task(SPEC) as other:
        for put in first:
            task.store.put(*put)
        task.commit()
        logged = _in_order(list(task.store.logged()))
        other.state.restore("store", batch_of(logged))
        assert _history(other) == _history(task)
        for put in later:
            key, value, time = put
            latest = task.store.get(key)
            if value is None and latest is not None and latest.timestamp == time:
                # It leaves no trace but how what came before lies there, which no changelog tells.
                continue
            assert other.store.put(*put) == task.store.put(*put)
            assert _history(other) == _history(task)


def test_the_latest_versions_are_distinguished() -> None:
    with Task(SPEC) as task:
        for put in (("a", "x", 1), ("a", "y", 5), ("b", "x", 2), ("b", None, 6), ("a", "z", 3)):
            task.store.put(*put)
        assert list(task.store.latest()) == [(b"a", b"y", 5)]
