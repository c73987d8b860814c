"""Whatever metrics there are, Prometheus can read the scrape: one bad series would cost all of them."""

from __future__ import annotations

import random

import pytest
from prometheus_client.core import Metric
from prometheus_client.openmetrics import parser as openmetrics_parser
from prometheus_client.parser import text_string_to_metric_families

from pystreams.metrics import Metrics, Sample
from pystreams.metrics.catalogue import MEANINGS, OWN
from pystreams.metrics.exposed import exposed_name
from pystreams.serving.prometheus import exposition

LEVELS = {
    "stream-metrics": {},
    "stream-thread-metrics": {"thread_id": "t"},
    "stream-task-metrics": {"thread_id": "t", "task_id": "0_0"},
    "stream-processor-node-metrics": {"thread_id": "t", "task_id": "0_0", "processor_node_id": "out"},
    "stream-topic-metrics": {"thread_id": "t", "task_id": "0_0", "processor_node_id": "out", "topic": "out"},
    "stream-record-cache-metrics": {"thread_id": "t", "task_id": "0_0", "record_cache_id": "counts"},
    "stream-state-metrics": {"thread_id": "t", "task_id": "0_0", "rocksdb_state_id": "counts"},
    "consumer-metrics": {"client_id": "t-consumer"},
    "consumer-node-metrics": {"client_id": "t-consumer", "node_id": "node-1"},
    "producer-metrics": {"client_id": "t-producer"},
    "producer-node-metrics": {"client_id": "t-producer", "node_id": "node-1"},
    "producer-topic-metrics": {"client_id": "t-producer", "topic": "out"},
    "consumer-fetch-manager-metrics": {"client_id": "t-consumer", "topic": "in", "partition": "0"},
    OWN: {},
}


OPEN_METRICS = "application/openmetrics-text; version=1.0.0"


def families(samples: list[Sample], accept: str) -> list[Metric]:
    """As scrapers read them, with a parser that is as strict as theirs."""
    content, content_type = exposition({"client": samples}, accept)
    if not accept:
        return list(text_string_to_metric_families(content.decode()))
    assert content_type.startswith("application/openmetrics-text")
    return list(openmetrics_parser.text_string_to_metric_families(content.decode()))


def read(*clients: list[Sample]) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    content, content_type = exposition({f"client-{n}": samples for n, samples in enumerate(clients)}, "")
    assert content_type.startswith("text/plain; version=")
    series = [s for family in text_string_to_metric_families(content.decode()) for s in family.samples]
    found = {(one.name, tuple(sorted(one.labels.items()))): one.value for one in series}
    assert len(found) == len(series), "a series is there twice"
    return found


def test_every_metric_of_the_catalogue_has_the_name_that_the_jmx_exporter_gives_it():
    for group, name in MEANINGS:
        sample = Sample(name, tuple(LEVELS[group].items()), 1)
        words = f"{group}-{name}".replace("-", "_")
        prefix = "" if group == OWN else f"kafka_{group.partition('-')[0].replace('stream', 'streams')}_"
        assert exposed_name(sample) == prefix + words
        assert (prefix + words) in {series for series, _ in read([sample])}


def test_clients_of_one_application_are_distinguished():
    one, two = Metrics(), Metrics()
    one.gauge("lagging-tasks").set(1)
    two.gauge("lagging-tasks").set(2)
    assert read(one.snapshot(), two.snapshot()) == {
        ("pystreams_lagging_tasks", (("client_id", "client-0"),)): 1,
        ("pystreams_lagging_tasks", (("client_id", "client-1"),)): 2,
    }


def test_names_and_tags_of_programs_may_be_anything():
    seed = random.randrange(1 << 32)
    print("seed", seed)
    choose = random.Random(seed)
    letters = 'abZ09_-. :"\\\n{}=,µé\u2028'
    word = lambda: "".join(choose.choices(letters, k=choose.randint(1, 6)))  # noqa: E731
    samples = [
        Sample(
            word() + choose.choice(["", "-total", "-created", "-bucket"]),
            tuple({word(): word() for _ in range(choose.randint(0, 3))}.items()),
            choose.random(),
            choose.random() < 0.5,
        )
        for _ in range(500)
    ]
    assert len(read(samples)) > 250
    assert sum(len(family.samples) for family in families(samples, OPEN_METRICS)) > 250


def test_scrapers_that_ask_for_openmetrics_can_read_every_metric():
    samples = [Sample(name, tuple(LEVELS[group].items()), 1) for group, name in MEANINGS]
    assert sum(len(family.samples) for family in families(samples, OPEN_METRICS)) == len(samples)


@pytest.mark.parametrize("accept", ["", OPEN_METRICS], ids=["text", "openmetrics"])
def test_a_programs_gauge_stays_one_whatever_its_name(accept):
    samples = [Sample("queue-total", (), 3), Sample("orders-total", (), 4, counts=True)]
    kinds = {family.name: family.type for family in families(samples, accept)}
    assert kinds == {
        "pystreams_application_queue_total": "gauge",
        "pystreams_application_orders": "counter",
    }


@pytest.mark.parametrize("other", ["orders", "orders-created"])
def test_a_counter_and_a_gauge_that_scrapers_cannot_distinguish_cost_no_other_metric(other):
    samples = [Sample("orders-total", (), 4, counts=True), Sample(other, (), 3), Sample("z", (), 1)]
    assert [family.name for family in families(samples, OPEN_METRICS)] == [
        "pystreams_application_orders",
        "pystreams_application_z",
    ]


def test_one_name_is_of_one_kind():
    samples = [Sample("a-total", (("of", "x"),), 4, counts=True), Sample("a-total", (("of", "y"),), 3)]
    assert [len(family.samples) for family in families(samples, OPEN_METRICS)] == [1]


def test_two_names_that_prometheus_cannot_distinguish_cost_no_other_metric():
    samples = [Sample("a-b", (), 1), Sample("a.b", (), 2), Sample("c", (), 3)]
    found = read(samples)
    assert found["pystreams_application_a_b", (("client_id", "client-0"),)] == 1
    assert found["pystreams_application_c", (("client_id", "client-0"),)] == 3
