"""Metrics have Java's names, groups, labels and units, and the page names every metric of Java that is left out.

That applications have the metrics of the catalogue, and no others, is in ``tests/serving/test_what_is_watched.py`` and
``tests/kafka/applications/test_kafka_client_metrics.py``.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from pystreams.metrics.catalogue import CONSUMER, CONSUMER_CLIENT, MEANINGS, OWN, STATE
from tests.docs.manual import DOCS
from tests.unit.metrics import java_metrics
from tests.unit.metrics.java_metrics import JAVA_METRICS
from tests.unit.metrics.units import unit_of
from tests.unit.serving.test_exposition import LEVELS

PAGE = (DOCS / "how-to" / "metrics-and-java.md").read_text(encoding="utf-8")
JAVA = {(metric.group, metric.name) for metric in JAVA_METRICS}
OURS = {(group, name) for group, name in MEANINGS if group != OWN}

#: Java registers them with standbys only.
OF_STANDBYS = {("stream-task-metrics", "update-rate"), ("stream-task-metrics", "update-total")}
#: Labels that name a store.
STATE_TAGS = (
    "rocksdb_state_id",
    "rocksdb_window_state_id",
    "rocksdb_session_state_id",
    "in_memory_state_id",
    "in_memory_suppression_state_id",
)


def rows() -> list[tuple[str, str]]:
    """Group and pattern of each row of the page."""
    found = []
    for section in PAGE.split("\n### ")[1:]:
        group = section.split("\n", 1)[0]
        for patterns in re.findall(r"^\| (`.*?) \| ", section, flags=re.MULTILINE):
            found += [(group, pattern) for pattern in re.findall(r"`([^`]+)`", patterns)]
    return found


def matches(row: tuple[str, str], metric: tuple[str, str]) -> bool:
    return row[0] == metric[0] and fnmatchcase(metric[1], row[1])


def test_what_has_a_group_of_java_is_one_of_its_metrics() -> None:
    assert OURS - JAVA == OF_STANDBYS


def test_each_metric_of_java_is_there_or_left_out_with_a_reason() -> None:
    unexplained = [one for one in JAVA - OURS if not any(matches(row, one) for row in rows())]
    assert sorted(unexplained) == []


def test_the_page_leaves_out_nothing_that_is_there_or_that_java_does_not_have() -> None:
    for row in rows():
        left_out = {one for one in JAVA - OURS if matches(row, one)}
        assert left_out, f"{row} matches nothing that is left out"
        assert not [one for one in OURS if matches(row, one)], f"{row} matches what is there"


def test_the_page_counts_right() -> None:
    assert f"has {len(OURS & JAVA)} of the {len(JAVA)} metrics" in PAGE


def test_units_are_those_of_java() -> None:
    shared = [metric for metric in JAVA_METRICS if (metric.group, metric.name) in OURS]
    different = {
        (metric.group, metric.name): (unit_of(metric.group, metric.name), java_metrics.unit_of(metric))
        for metric in shared
        if unit_of(metric.group, metric.name) != java_metrics.unit_of(metric)
    }
    assert different == {}


def test_labels_are_those_of_java() -> None:
    tags: dict[tuple[str, str], set[frozenset[str]]] = {}
    for metric in JAVA_METRICS:
        of_metric = frozenset(tag.replace("-", "_") for tag in metric.tags)
        tags.setdefault((metric.group, metric.name), set()).add(of_metric)
    for metric in OURS - OF_STANDBYS:
        # Prometheus shows the id of the client where there is no other label; Java's process ids are not shown.
        levels = {frozenset(LEVELS[metric[0]]) or frozenset({"client_id"})}
        if metric[0] == STATE:
            levels = {frozenset({tag, "task_id", "thread_id"}) for tag in STATE_TAGS}
        if metric[0] == CONSUMER:
            # Of a partition, or of the whole client.
            levels.add(frozenset(LEVELS[CONSUMER_CLIENT]))
        theirs = {level - {"process_id", "application_id"} for level in tags[metric]}
        assert levels & theirs, (metric, levels, theirs)
