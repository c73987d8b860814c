"""A store is the fold of its changelog, whatever happens between its writes: reads, evictions, commits, aborts,
crashes, restores, and changes of who runs its task."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from pystreams.windowed import Windowed
from tests.examples import examples
from tests.unit.runtime.tasks.commands_kit import CACHED, KEYS, TIMES, Deed, Kind
from tests.unit.runtime.tasks.fold_kit import Folds, Moment
from tests.unit.state.state_kit import read_all

keys = st.sampled_from(KEYS)
times = st.sampled_from(TIMES)
# A deletion of something finds little, so there are fewer of them.
deeds: list[tuple[Kind, Deed]] = [
    *(("plain", deed) for deed in ("put", "extend", "delete")),
    *(("windows", deed) for deed in ("put", "put", "delete")),
    *(("sessions", deed) for deed in ("put", "merge", "merge", "delete", "forget")),
    *(("versions", deed) for deed in ("put", "put", "delete")),
]
#: What happens before something else: so many rounds of both members, and then so many records come. It belongs to each
#: rule, because most examples have some of the rules only, and those without records show nothing.
meanwhile = st.tuples(
    st.integers(0, 3),
    st.lists(st.tuples(st.sampled_from(deeds), keys, times, st.booleans()), max_size=8),
)
Meanwhile = tuple[int, Sequence[tuple[tuple[Kind, Deed], str, int, bool]]]


class Interleavings(RuleBasedStateMachine):
    """One task with stores of many kinds, its standby, and all that can happen to both."""

    transactional: ClassVar[bool]

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self._folds: Folds | None = None

    @property
    def folds(self) -> Folds:
        assert self._folds is not None
        return self._folds

    @initialize(
        cache_bytes=st.sampled_from([300, 1_000, 100_000]),
        in_memory=st.sampled_from([None, False, True]),
    )
    def begin(self, cache_bytes: int, in_memory: bool | None) -> None:
        self._folds = Folds(
            Path(self._folder.name),
            transactional=self.transactional,
            cache_bytes=cache_bytes,
            in_memory=in_memory,
        )
        self.folds.begin()
        self.folds.round(0)
        self.folds.check()

    def _work(self, meanwhile: Meanwhile) -> None:
        rounds, written = meanwhile
        for _ in range(rounds):
            for which in (0, 1):
                self.folds.round(which)
            self.folds.check()
        for (kind, deed), key, time, lasts in written:
            self.folds.feed(kind, deed, key, time, lasts=lasts)
        self.folds.active.work()
        self.folds.check()

    @rule(meanwhile=meanwhile)
    def put_and_delete(self, meanwhile: Meanwhile) -> None:
        self._work(meanwhile)

    @rule(
        meanwhile=meanwhile,
        variant=st.sampled_from(["", CACHED]),
        bounds=st.tuples(keys, keys),
        span=st.tuples(times, times),
    )
    def read(
        self, meanwhile: Meanwhile, variant: str, bounds: tuple[str, str], span: tuple[int, int]
    ) -> None:
        self._work(meanwhile)
        lower, upper = sorted(bounds)
        first, last = sorted(span)
        if self.folds.running is not None:
            self.folds.read(f"plain{variant}", lower, upper)
            self.folds.read_windows(f"windows{variant}", lower, upper, first, last)
            self.folds.read_sessions(f"sessions{variant}", lower, upper, first, last)
            self.folds.read_versions("versions", lower, last)
            self.folds.check()

    @rule(meanwhile=meanwhile, share=st.sampled_from([0.0, 0.5]))
    def evict(self, meanwhile: Meanwhile, share: float) -> None:
        self._work(meanwhile)
        self.folds.evict(share)
        self.folds.check()

    @rule(meanwhile=meanwhile, fails=st.sampled_from([False, False, True]))
    def commit(self, meanwhile: Meanwhile, fails: bool) -> None:
        self._work(meanwhile)
        self.folds.commit(fails=fails)
        self.folds.check()

    @rule(meanwhile=meanwhile, in_commit=st.booleans())
    def abort(self, meanwhile: Meanwhile, in_commit: bool) -> None:
        """``in_commit``: when a commit has failed."""
        self._work(meanwhile)
        if in_commit:
            self.folds.commit(fails=True)
        self.folds.abort()
        self.folds.check()

    @rule(
        meanwhile=meanwhile,
        which=st.sampled_from([0, 1]),
        moment=st.sampled_from(["now", "before the log commits", "after the log commits"]),
        disk_lost=st.booleans(),
    )
    def crash(self, meanwhile: Meanwhile, which: int, moment: Moment, disk_lost: bool) -> None:
        self._work(meanwhile)
        self.folds.kill(which, moment, disk_lost=disk_lost)
        self.folds.check()

    @rule(which=st.sampled_from([0, 1]), later_ms=st.sampled_from([0, 1_500, 20_000]))
    def restore(self, which: int, later_ms: int) -> None:
        self.folds.worlds[which].clock.advance_ms(later_ms)
        self.folds.round(which)
        self.folds.check()

    @rule(meanwhile=meanwhile, lost=st.booleans())
    def promote_and_demote(self, meanwhile: Meanwhile, lost: bool) -> None:
        self._work(meanwhile)
        self.folds.promote(lost=lost)
        self.folds.check()

    def teardown(self) -> None:
        with self._folder:
            if self._folds is not None:
                try:
                    self._folds.settle()
                    self._folds.check_end()
                finally:
                    self._folds.close()


class ExactlyOnce(Interleavings):
    """What is written shows with its commit."""

    transactional = True


class AtLeastOnce(Interleavings):
    """What is written shows at once."""

    transactional = False


ExactlyOnce.TestCase.settings = AtLeastOnce.TestCase.settings = examples(50, stateful_step_count=15)
test_a_store_is_the_fold_of_its_changelog_exactly_once = ExactlyOnce.TestCase
test_a_store_is_the_fold_of_its_changelog_at_least_once = AtLeastOnce.TestCase


@pytest.mark.parametrize("in_memory", [None, True])
def test_what_was_logged_and_not_committed_expires_nothing_while_it_is_repeated(
    tmp_path: Path, in_memory: bool | None
) -> None:
    """The standby takes over. The first record has it forget a session that comes much later."""
    folds = Folds(tmp_path, transactional=False, cache_bytes=0, in_memory=in_memory)

    def work() -> None:
        folds.active.work()
        folds.check()

    def commit() -> None:
        folds.commit(fails=False)
        folds.check()

    def a_shows() -> None:
        folds.read_sessions("sessions", "a", "b", 0, 400_000)
        assert read_all(folds.running.stores["sessions"].all()) == [  # type: ignore[union-attr]
            (Windowed("a", 180_000, 180_000), "0")
        ]

    def turn(which: int) -> None:
        folds.round(which)
        folds.check()

    with closing(folds):
        folds.begin()
        turn(0)
        folds.feed("sessions", "put", "a", 180_000, lasts=False)
        work()
        commit()
        folds.feed("sessions", "forget", "b", 100_000, lasts=False)
        for _ in range(9):
            folds.feed("plain", "put", "a", 0, lasts=False)
        folds.feed("sessions", "put", "b", 320_000, lasts=False)
        # Ten records are read at once.
        work()
        work()
        folds.promote(lost=True)
        turn(1)
        work()
        a_shows()
        commit()
        # Nor does the one that was lost go further when it restores its stores.
        folds.promote(lost=False)
        turn(0)
        a_shows()
        folds.settle()
        folds.check_end()
