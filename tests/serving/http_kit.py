"""A look at the pages of a running application, as Prometheus and Kubernetes have it."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any, NamedTuple

from prometheus_client.parser import text_string_to_metric_families


class Page(NamedTuple):
    """What a request got."""

    status: int
    text: str
    headers: Mapping[str, str]

    @property
    def json(self) -> Any:
        return json.loads(self.text)


def get(address: object, path: str, **headers: str) -> Page:
    """Ask for a page."""
    request = urllib.request.Request(f"http://{address}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return Page(answer.status, answer.read().decode(), dict(answer.headers))
    except urllib.error.HTTPError as error:
        with error:
            return Page(error.code, error.read().decode(), dict(error.headers))


class Scrape:
    """All series of a scrape."""

    def __init__(self, text: str) -> None:
        families = list(text_string_to_metric_families(text))
        #: Counter, gauge and so on, by the name of the family.
        self.kinds = {family.name: family.type for family in families}
        self.series = [sample for family in families for sample in family.samples]

    def total(self, name: str, **labels: str) -> float:
        """The sum of all series with this name and these labels."""
        found = [s for s in self.series if s.name == name and labels.items() <= s.labels.items()]
        return sum(sample.value for sample in found)

    def labels(self, name: str) -> list[dict[str, str]]:
        return [dict(sample.labels) for sample in self.series if sample.name == name]


def scrape(address: object) -> Scrape:
    page = get(address, "/metrics")
    assert page.status == 200, page.text
    return Scrape(page.text)
