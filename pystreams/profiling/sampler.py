"""Looks at the stacks of an application's stream threads, a few hundred times a second.

Python lets one thread compute at a time, so a thread that wants to look waits until the computing thread releases the
interpreter: at the latest after the switch interval, and earlier if that thread itself waits (for a file, for the
network). With the usual interval of 5 ms, most looks would see such a wait, even if it is very short. So the interval
is shorter here.
"""

from __future__ import annotations

import random
import sys
import threading
from collections import defaultdict
from collections.abc import Collection
from types import CodeType, FrameType, TracebackType
from typing import Final, NamedTuple, Protocol, Self, TypeAlias

from pystreams.clock import Clock, SystemClock
from pystreams.engine.codegen import LineOwner
from pystreams.engine.linking import LINE_OWNERS
from pystreams.runtime.threads.progress import Progress

#: The time between two looks, on average.
INTERVAL_MS: Final = 5.0
_SWITCH_INTERVAL_S: Final = 0.0005
#: How often it tries to read a stack until all of its frames are from the same moment.
_ATTEMPTS: Final = 4
#: How often it reads the list of threads.
_THREADS_INTERVAL_MS: Final = 100.0


class StackFrame(NamedTuple):
    """A function on a stack; in generated code also the owner of the line."""

    code: CodeType
    owner: LineOwner | None


#: From the outermost function to the innermost.
Stack: TypeAlias = tuple[StackFrame, ...]


class Sampled(Protocol):
    """The part of ``Streams`` that the sampler needs."""

    def progress(self) -> Progress: ...


class Sampler:
    """Looks within a ``with`` block."""

    def __init__(self, streams: Sampled, clock: Clock | None = None) -> None:
        #: The time at which each stack was seen: the sum of the times between the looks (ms).
        self.stacks_ms: defaultdict[Stack, float] = defaultdict(float)
        self.looks = 0
        self._streams = streams
        self._clock = SystemClock() if clock is None else clock
        #: The intervals are random, because regular looks would always miss, or always hit, work with the same period.
        self._random = random.Random(0)  # noqa: S311 - no secret
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pystreams-profiler", daemon=True)
        self._switch_interval_s = sys.getswitchinterval()

    def __enter__(self) -> Self:
        sys.setswitchinterval(min(_SWITCH_INTERVAL_S, self._switch_interval_s))
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        sys.setswitchinterval(self._switch_interval_s)

    def _run(self) -> None:
        threads: Collection[int] = ()
        asked_ms = looked_ms = self._clock.monotonic_ms()
        while not self._ended.wait(self._random.uniform(0.5, 1.5) * INTERVAL_MS / 1000):
            now_ms = self._clock.monotonic_ms()
            if not threads or now_ms - asked_ms >= _THREADS_INTERVAL_MS:
                threads, asked_ms = self._stream_threads(), now_ms
            for thread in threads:
                if stack := _stack_of_thread(thread):
                    self.stacks_ms[stack] += now_ms - looked_ms
            self.looks += 1
            looked_ms = now_ms

    def _stream_threads(self) -> list[int]:
        names = {thread.name for thread in self._streams.progress().threads}
        return [thread.ident for thread in threading.enumerate() if thread.name in names and thread.ident]


def _stack_of_thread(thread: int) -> Stack:
    """The stack of a thread; empty if it has ended. If the thread continues while its frames are read one by one, they
    do not fit together, and are read again."""
    stack: Stack = ()
    for _ in range(_ATTEMPTS):
        innermost = sys._current_frames().get(thread)
        if innermost is None:
            return ()
        at = innermost.f_lasti
        stack = _stack_of(innermost)
        if innermost.f_lasti == at and sys._current_frames().get(thread) is innermost:
            break
    return stack


def _stack_of(frame: FrameType | None) -> Stack:
    places: list[StackFrame] = []
    while frame is not None:
        owners = frame.f_globals.get(LINE_OWNERS)
        owner = None if owners is None else owners[(frame.f_lineno or 1) - 1]
        places.append(StackFrame(frame.f_code, owner))
        frame = frame.f_back
    return tuple(reversed(places))
