"""Whatever an application does, Java and we can take turns at it: its results are those of Java undisturbed.

Eleven kinds of applications, one of them exactly once as well, each with the state of the last turn but one kept and
wiped: see ``take_over_play``.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from pystreams.ids import TopicPartition
from pystreams.record import Headers
from pystreams.take_over.last_run import topology_topic
from pystreams.windowed import Windowed
from tests.interop.java_side import JavaSide
from tests.interop.take_over_play import (
    GROUPS,
    RUNS,
    UNDISTURBED,
    Play,
    Raw,
    application_id,
    own_topics,
    partitions_of,
)
from tests.interop.take_over_records import RACING, TURNS, turns_of
from tests.interop.taken_over import SIZE_MS, TAKEN
from tests.kafka.server import KafkaServer
from tests.kafka.support import Cluster

SEED = 20_131_003

EACH = pytest.mark.parametrize("name", TAKEN)
EACH_RUN = pytest.mark.parametrize("run", RUNS)

#: By application, the play of its group.
Plays = dict[str, Play]


@pytest.fixture(scope="module")
def plays(
    server: KafkaServer, java_process: JavaSide, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Plays]:
    cluster = Cluster(server.bootstrap_servers, tmp_path_factory.mktemp("turns"))
    # An hour ago: topics with a time limit keep it.
    origin_ms = (time.time_ns() // 1_000_000 - 3_600_000) // SIZE_MS * SIZE_MS
    try:
        plays: Plays = {}
        for names in GROUPS:
            play = Play(cluster, java_process, names)
            play.play(turns_of(names, SEED, origin_ms))
            plays.update(dict.fromkeys(names, play))
        yield plays
    finally:
        java_process.ask("stop-all")
        cluster.close()


#: Results and changelogs by partition and offset.
Written = dict[TopicPartition, dict[int, Raw]]
#: By key: windowed or not, the value, time and headers.
Results = dict[Any, list[tuple[Any, Any, int, Headers]]]


def changelogs_of(name: str, run: str) -> list[str]:
    return own_topics(name, run, TAKEN[name].changelogs)


@pytest.fixture(scope="module")
def written(plays: Plays) -> Written:
    """All results and changelogs."""
    of_all = [(name, run) for name in TAKEN for run in (*RUNS, UNDISTURBED)]
    outputs = [f"{name}-{run}" for name, run in of_all]
    play = next(iter(plays.values()))
    return play.read([*outputs, *(topic for name, run in of_all for topic in changelogs_of(name, run))])


def results(play: Play, written: Written, name: str, run: str, turn: int) -> Results:
    """What an application of a run has written until the end of a turn, by key; of windows by what is in them."""
    topic = f"{name}-{run}"
    read_key, read_value = TAKEN[name].key.deserializer(topic), TAKEN[name].value.deserializer(topic)
    found: Results = defaultdict(list)
    for partition in partitions_of([topic]):
        for offset, (key, value, at, headers) in written[partition].items():
            if offset >= play.marks[turn][partition]:
                break
            assert key is not None
            decoded = read_key(key)
            inner = decoded.key if isinstance(decoded, Windowed) else decoded
            found[inner].append((decoded, None if value is None else read_value(value), at, headers))
    return comparable(name, turn, found)


def comparable(name: str, turn: int, found: Results) -> Results:
    """What does not depend on the moment of the hand-over."""
    if name == "meetings":
        # When, and with whose headers, those are told that have met nobody depends on what was looked at since the
        # start; at last all are.
        for key, made in found.items():
            alone = [(*one[:3], ()) for one in made if "null" in one[1]] if turn == TURNS - 1 else []
            found[key] = sorted([one for one in made if "null" not in one[1]] + alone)
        return {key: made for key, made in found.items() if made}
    if name.startswith("foreign"):
        return {key: made[-1:] if key.startswith(RACING) else made for key, made in found.items()}
    return found


@EACH
@EACH_RUN
def test_each_turn_writes_what_java_writes_undisturbed(plays: Plays, written: Written, name: str, run: str):
    play = plays[name]
    for turn in range(TURNS):
        expected = results(play, written, name, UNDISTURBED, turn)
        # Those of the records that bring results about; Java's sessions have none.
        assert any(headers for made in expected.values() for *_, headers in made) == (name != "sessions")
        assert sum(map(len, expected.values())) > 20 * turn
        assert results(play, written, name, run, turn) == expected, f"turn {turn}"


#: Not all of what these stores log does: which of two changes between two commits, or when something is deleted.
LAST_ONLY = (
    "-final-store-changelog",
    "-this-join-store-changelog",
    "-other-join-store-changelog",
    "-shared-join-store-changelog",
)


def logged(topic: str, records: Iterable[Raw]) -> dict[bytes, list[tuple[bytes | None, int, Headers]]]:
    """The changes of a changelog by key, as far as they do not depend on the moment of the hand-over."""
    found: dict[bytes, list[tuple[bytes | None, int, Headers]]] = defaultdict(list)
    for key, value, at, headers in records:
        assert key is not None
        found[key].append((value, at, headers))
    if not topic.endswith(LAST_ONLY):
        return {key: made[-1:] if RACING.encode() in key else made for key, made in found.items()}
    last = {key: made[-1:] for key, made in found.items() if made[-1][0] is not None}
    if topic.endswith("-final-store-changelog"):
        # Its records have the time at which they were sent.
        return {key: [(value, 0, headers)] for key, [(value, _, headers)] in last.items()}
    if topic.endswith("-shared-join-store-changelog"):
        return last
    # Records of one key and time are told apart by a number, which Java forgets when it stops.
    together: dict[bytes, list[tuple[bytes | None, int, Headers]]] = defaultdict(list)
    for key in sorted(last):
        together[key[:-4]] += last[key]
    return {key: sorted(made) for key, made in together.items()}


@EACH
@EACH_RUN
def test_changelogs_are_those_of_java_undisturbed(written: Written, name: str, run: str):
    for ours, javas in zip(changelogs_of(name, run), changelogs_of(name, UNDISTURBED), strict=True):
        found, expected = (
            {p.partition: logged(topic, written[p].values()) for p in partitions_of([topic])}
            for topic in (ours, javas)
        )
        assert any(expected.values()), javas
        assert found == expected, ours


@EACH_RUN
def test_records_waited_at_every_hand_over(plays: Plays, run: str):
    for turn in range(TURNS - 1):
        for name, play in plays.items():
            assert sum(play.waiting[turn][application_id(name, run)].values()) > 0, (turn, name)


@EACH
@pytest.mark.parametrize("first", RUNS)
def test_records_waited_between_sub_topologies_when_each_of_both_stopped(plays: Plays, name: str, first: str):
    """Once at least: how far the one gets that is told to stop is a matter of the processor's time."""
    for suffix in TAKEN[name].between[-1:]:
        # Those who have the first turn of this run have every other turn of it, and the others of the other run.
        turns = [(turn, RUNS[(RUNS.index(first) + turn) % 2]) for turn in range(TURNS - 1)]
        waiting = [
            plays[name].waiting[turn][application_id(name, run)][f"{application_id(name, run)}-{suffix}"]
            for turn, run in turns
        ]
        assert any(waiting), suffix


@EACH
def test_topics_that_we_make_are_those_that_java_makes(plays: Plays, name: str):
    made_by_java, made_here = (
        {
            topic.name.removeprefix(f"{name}-{run}-"): (topic.partitions, topic.config)
            for topic in plays[name].topics[0].values()
            if topic.name.startswith(f"{name}-{run}-") and topic.name != topology_topic(f"{name}-{run}")
        }
        for run in ("kept", "wiped")
    )
    assert made_here == made_by_java
    assert made_here.keys() == {*TAKEN[name].between, *TAKEN[name].changelogs}


@pytest.mark.parametrize("names", GROUPS, ids="+".join)
def test_after_the_first_turn_only_what_ran_last_is_made_where_java_began(plays: Plays, names: list[str]):
    play = plays[names[0]]
    begun_by_java = {topology_topic(application_id(name, "kept")) for name in names}
    assert play.topics[1].keys() - play.topics[0].keys() == begun_by_java
    assert play.topics[0].items() <= play.topics[1].items()
    assert play.topics == [play.topics[0], *([play.topics[1]] * (TURNS - 1))]
