"""Who walks through a store and writes to it meanwhile finds every entry that was not written, though the cache, which
is full, evicts entries and flushes during the walk."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pystreams.serde import INT
from pystreams.state.spec import StoreSpec
from pystreams.windowed import Windowed
from tests.unit.state.state_kit import Task, key_value, session, timestamped, timestamped_window, window

#: An entry: key and time; key-value stores know it by both together.
Place = tuple[str, int]

KEYS = "abcd"
TIMES = range(0, 60, 10)


class Kind(NamedTuple):
    """A kind of store. ``put`` sets the value of an entry, None deletes it; ``walks`` give (entry, value)."""

    spec: Callable[..., StoreSpec]
    put: Callable[[Any, Place, int | None], object]
    walks: tuple[Callable[[Any], Any], ...]
    place: Callable[[Any], Place]
    value: Callable[[Any], Any] = lambda value: value


def _put_plain(store: Any, place: Place, value: int | None) -> None:
    name = f"{place[0]}{place[1]:02}"
    store.delete(name) if value is None else store.put(name, value)


def _put_timed(store: Any, place: Place, value: int | None) -> None:
    name = f"{place[0]}{place[1]:02}"
    store.delete(name) if value is None else store.put(name, (value, place[1]))


def _put_session(store: Any, place: Place, value: int | None) -> None:
    store.put(Windowed(place[0], place[1], place[1] + 5), value)


PLAIN_WALKS = (lambda store: store.all(), lambda store: store.range("a10", "c30"))
WINDOW_WALKS = (
    lambda store: store.all(),
    lambda store: store.fetch_range("a", "c", 0, 40),
)
#: Those of a range of keys find windows twice, as in Java.
BY_TIME_WALKS = (lambda store: store.all(), lambda store: store.fetch_all(10, 40))
SESSION_WALKS = (lambda store: store.all(), lambda store: store.find_sessions_range("a", "c", 0, 40))


def _named(key: str) -> Place:
    return key[0], int(key[1:])


def _window(key: Any) -> Place:
    return key.key, key.start


KINDS = {
    "plain": Kind(lambda **s: key_value(value_serde=INT, **s), _put_plain, PLAIN_WALKS, _named),
    "timestamped": Kind(timestamped, _put_timed, PLAIN_WALKS, _named, lambda value: value[0]),
    "windows": Kind(
        lambda **s: window(value_serde=INT, **s),
        lambda st, p, v: st.put(p[0], v, p[1]),
        WINDOW_WALKS,
        _window,
    ),
    "windows by time": Kind(
        lambda **s: timestamped_window(by_time=True, **s),
        lambda st, p, v: st.put(p[0], None if v is None else (v, p[1]), p[1]),
        BY_TIME_WALKS,
        _window,
        lambda value: value[0],
    ),
    "windows with an index": Kind(
        lambda **s: timestamped_window(by_time=True, headers=True, **s),
        lambda st, p, v: st.put(p[0], None if v is None else (v, p[1]), p[1]),
        WINDOW_WALKS,
        _window,
        lambda value: value[0],
    ),
    "sessions": Kind(lambda **s: session(value_serde=INT, **s), _put_session, SESSION_WALKS, _window),
}

PLACES = ["on disk", "in memory"]


@pytest.fixture
def chance() -> random.Random:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    return random.Random(seed)


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("name", KINDS)
def test_what_was_not_written_during_a_walk_is_found_once(
    name: str, where: str, chance: random.Random, tmp_path: Path
) -> None:
    kind = KINDS[name]
    if where == "in memory" and name == "windows with an index":
        pytest.skip("only stores on disk have an index")
    for number in range(15):
        spec = kind.spec(cached=True, persistent=where == "on disk")
        with Task(
            spec, directory=tmp_path / f"{number}", cache_bytes=chance.choice((0, 150, 400, 900))
        ) as task:
            _check(kind, task, chance)


def _check(kind: Kind, task: Task, chance: random.Random) -> None:
    model: dict[Place, int] = {}
    for _ in range(30):
        _write(kind, task, model, chance)
        if chance.random() < 0.1:
            task.commit()
    for walk in kind.walks:
        listed = [*_entries(kind, walk(task.store))]
        whole = dict(listed)
        assert len(listed) == len(whole)
        assert whole.items() <= model.items()
        before, written, found = dict(whole), set[Place](), list[tuple[Place, Any]]()
        for entry in _entries(kind, walk(task.store)):
            found.append(entry)
            while chance.random() < 0.6:
                written.add(_write(kind, task, model, chance))
        quiet = [entry for entry in found if entry[0] not in written]
        assert len(quiet) == len(dict(quiet))
        assert dict(quiet) == {place: value for place, value in before.items() if place not in written}


def _write(kind: Kind, task: Task, model: dict[Place, int], chance: random.Random) -> Place:
    place = chance.choice(KEYS), chance.choice(TIMES)
    value = None if chance.random() < 0.2 else chance.randrange(1_000)
    task.at(60)
    kind.put(task.store, place, value)
    if value is None:
        model.pop(place, None)
    else:
        model[place] = value
    return place


def _entries(kind: Kind, iterator: Any) -> Iterator[tuple[Place, Any]]:
    with iterator as entries:
        for key, value in entries:
            if value is not None:
                yield kind.place(key), kind.value(value)
