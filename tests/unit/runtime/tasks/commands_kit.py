"""A task with many kinds of stores that does to them what its records say, and what its stores have to hold then.

Each command is done to a store without a cache and to one with a cache. What they have to hold is computed twice: from
the commands, and from the changelogs, whose keys are read here by hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from struct import Struct
from typing import Any, Literal, NamedTuple, cast

from pystreams import App, Processor
from pystreams.ids import TopicPartition
from pystreams.record import Record
from pystreams.state.spec import StoreSpec
from pystreams.state.stores.factory import Stores
from pystreams.stream_time import TIME_MAX
from pystreams.windowed import Windowed
from tests.unit.runtime.tasks.log_kit import Line

COMMANDS = TopicPartition("commands", 0)
KEYS = ("a", "ab", "b")
TIMES = range(0, 340_000, 20_000)
#: Sessions that are no further apart than this are merged.
GAP_MS = 20_000
#: So short that windows and sessions expire. A segment of such a store on disk is 60 s long.
RETENTION_MS = 100_000
#: Versions never expire.
HISTORY_MS = 10**12
#: Behind the name of the store with a cache.
CACHED = "-cached"

Kind = Literal["plain", "windows", "sessions", "versions"]
#: ``extend``: put a value to the end of the one that is there. ``merge``: put a session in the place of those near it.
#: ``forget``: delete all sessions of a key.
Deed = Literal["put", "delete", "extend", "merge", "forget"]
#: Key; key and start of a window; key, start and end of a session; key and time of a version.
Address = tuple[Any, ...]


class Command(NamedTuple):
    """What a record has the task do. Values are made of the record's offset: so none is taken for another."""

    kind: Kind
    deed: Deed
    key: str
    start: int = 0
    end: int = 0

    def line(self) -> Line:
        text = f"{self.kind} {self.deed} {self.start} {self.end}"
        return self.key.encode(), text.encode(), max(self.start, self.end)

    @classmethod
    def of_record(cls, key: str, value: str) -> Command:
        kind, deed, start, end = value.split()
        return cls(cast("Kind", kind), cast("Deed", deed), key, int(start), int(end))


class Obedient(Processor[str, str, str, str]):
    """Does what the commands say."""

    def __init__(self, specs: Sequence[StoreSpec]) -> None:
        self._specs = specs

    def process(self, record: Record[str, str]) -> None:
        command = Command.of_record(record.key, record.value)
        metadata = self.context.record_metadata()
        assert metadata is not None
        for spec in self._specs:
            if spec.name.removesuffix(CACHED) == command.kind:
                _do(self.context.store(spec.name), command, str(metadata.offset))


def _do(store: Any, command: Command, value: str) -> None:
    kind, deed, key, start, end = command
    put = None if deed == "delete" else value
    if kind == "plain":
        if deed == "extend" and (old := store.get(key)) is not None:
            put = f"{old}.{value}"
        store.put(key, put)
    elif kind in ("windows", "versions"):
        store.put(key, put, start)
    elif deed in ("merge", "forget"):
        bounds = (0, 10**12) if deed == "forget" else (start - GAP_MS, end + GAP_MS)
        with store.find_sessions(key, *bounds) as found:
            merged = dict(found)
        for session in merged:
            # Unlike a put, a removal does not move the time of a store in memory: the merged session does.
            if deed == "merge":
                store.remove(session)
            else:
                store.put(session, None)
        if deed == "merge":
            whole = Windowed(
                key, min([start, *(s.start for s in merged)]), max([end, *(s.end for s in merged)])
            )
            store.put(whole, ".".join([*sorted(merged.values()), value]))
    else:
        store.put(Windowed(key, start, end), put)


@dataclass
class Content:
    """What a store holds, None for what was deleted, and the latest time of its windows, sessions or versions."""

    kind: Kind
    entries: dict[Address, str | None] = field(default_factory=dict)
    time_ms: int = -1

    @classmethod
    def of_changelog(cls, kind: Kind, lines: Iterable[Line]) -> Content:
        """The fold of a changelog: the last record of each key counts."""
        content = cls(kind)
        for raw, value, time_ms in lines:
            assert raw is not None
            content.put(address_of(kind, raw, time_ms), None if value is None else value.decode())
        return content

    def copy(self) -> Content:
        return Content(self.kind, dict(self.entries), self.time_ms)

    def put(self, address: Address, value: str | None, record_ms: int = TIME_MAX) -> None:
        """``record_ms``: the time of the record that does it. Only what was logged and not committed may be later, and
        it moves the time no further than that record."""
        self.entries[address] = value
        if self.kind != "plain":
            self.time_ms = max(self.time_ms, min(address[-1], record_ms))

    def do(self, command: Command, value: str) -> None:
        kind, deed, key, start, end = command
        record_ms = command.line()[2]
        put = None if deed == "delete" else value
        if kind == "plain":
            old = self.entries.get((key,))
            self.put((key,), f"{old}.{value}" if deed == "extend" and old is not None else put)
        elif kind in ("windows", "versions"):
            self.put((key, start), put)
        elif deed in ("merge", "forget"):
            bounds = (0, 10**12) if deed == "forget" else (start - GAP_MS, end + GAP_MS)
            merged = {
                (other, first, last): found
                for (other, first, last), found in self.visible().items()
                if other == key and last >= bounds[0] and first <= bounds[1]
            }
            for address in merged:
                self.put(address, None, record_ms)
            if deed == "merge":
                whole = key, min([start, *(a[1] for a in merged)]), max([end, *(a[2] for a in merged)])
                self.put(whole, ".".join([*sorted(merged.values()), value]), record_ms)
        else:
            self.put((key, start, end), put)

    def visible(self, time_ms: int | None = None) -> dict[Address, str]:
        """What has not expired at a time (ms), None: at that of the content."""
        if time_ms is None:
            time_ms = self.time_ms
        expires = self.kind in ("windows", "sessions")
        return {
            address: value
            for address, value in self.entries.items()
            if value is not None and not (expires and address[-1] <= time_ms - RETENTION_MS)
        }

    def history(self, key: str) -> list[tuple[str, int, int | None]]:
        """The versions of a key: value, begin and end."""
        begun: list[tuple[Any, str | None]] = sorted(
            (address[1], value) for address, value in self.entries.items() if address[0] == key
        )
        return [
            (value, since, until)
            for (since, value), (until, _) in pairwise([*begun, (None, None)])
            if value is not None
        ]


_WINDOW, _SESSION = Struct(">qi"), Struct(">qq")


def address_of(kind: Kind, raw: bytes, time_ms: int) -> Address:
    """What a key of a changelog stands for."""
    if kind == "plain":
        return (raw.decode(),)
    if kind == "windows":
        start, sequence = _WINDOW.unpack(raw[-_WINDOW.size :])
        assert sequence == 0
        return raw[: -_WINDOW.size].decode(), start
    if kind == "sessions":
        end, start = _SESSION.unpack(raw[-_SESSION.size :])
        return raw[: -_SESSION.size].decode(), start, end
    return raw.decode(), time_ms


def kind_of(store: str) -> Kind:
    return cast("Kind", store.removesuffix(CACHED))


def specs(*, in_memory: bool | None) -> list[StoreSpec]:
    """``in_memory``: those with a cache (True), those without (False), or none are in memory."""
    made: list[StoreSpec] = []
    for suffix, cached in (("", False), (CACHED, True)):
        given: dict[str, Any] = {"cached": cached, "persistent": in_memory is not cached}
        made += [
            Stores.key_value_store(f"plain{suffix}", str, str, **given),
            Stores.window_store(f"windows{suffix}", str, str, size=1, retention=RETENTION_MS, **given),
            Stores.session_store(f"sessions{suffix}", str, str, retention=RETENTION_MS, **given),
        ]
    made.append(Stores.versioned_store("versions", str, str, history=HISTORY_MS))
    return made


def application(*, in_memory: bool | None) -> App:
    made = specs(in_memory=in_memory)
    app = App("app")
    app.stream(COMMANDS.topic, key=str, value=str).process(partial(Obedient, made), stores=made)
    return app
