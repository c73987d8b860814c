"""The queries of the dashboard and of the alert rules, and what they ask for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import promql_parser as promql
import yaml

from pystreams.metrics import Sample
from pystreams.metrics.catalogue import MEANINGS, OWN
from pystreams.metrics.exposed import exposed_name
from tests.unit.serving.test_exposition import LEVELS

ROOT = Path(__file__).resolve().parents[2]
FILES = ROOT / "pystreams" / "cli" / "commands" / "monitoring" / "files"
DASHBOARD = FILES / "dashboard.json"
ALERTS = FILES / "alerts.yaml"

#: Labels that Prometheus gives to every series, and what it says itself about those that it scrapes.
TARGET = frozenset({"job", "instance"})
OWN_SERIES: Mapping[str, frozenset[str]] = {"up": TARGET}


#: The metrics of pystreams alone that are about a client of Kafka.
_OWN_OF_CLIENTS: Final = (
    "request-retries-total",
    "request-errors-total",
    "request-timeouts-total",
    "requests-in-flight",
)


def catalogue() -> dict[str, str]:
    """The meaning of each metric, by the name that Prometheus has for it."""
    return {
        exposed_name(Sample(name, tuple(LEVELS[group].items()), 1)): meaning
        for (group, name), meaning in MEANINGS.items()
    }


def of_kafkas_clients() -> dict[str, frozenset[str]]:
    """The metrics that only applications on Kafka have, with their labels."""
    found = {}
    for group, name in MEANINGS:
        tags = LEVELS[group]
        if group == OWN and name in _OWN_OF_CLIENTS:
            tags = LEVELS["consumer-metrics"]
        elif not group.startswith(("consumer-", "producer-")) or name == "records-lag":
            continue
        labels = {
            tag: text
            for tag, text in tags.items()
            if group != "consumer-fetch-manager-metrics" or tag == "client_id"
        }
        found[exposed_name(Sample(name, tuple(labels.items()), 1))] = frozenset(labels)
    return found


class Query(NamedTuple):
    """``shown`` are the labels that a legend or the text of an alert shows."""

    where: str
    text: str
    shown: frozenset[str]


def dashboard() -> dict[str, Any]:
    return json.loads(DASHBOARD.read_text(encoding="utf-8"))


def alerts() -> list[dict[str, Any]]:
    groups = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def queries() -> list[Query]:
    """Those of all panels and alerts."""
    found = []
    for panel in dashboard()["panels"]:
        for target in panel.get("targets", []):
            shown = re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])
            where = f"panel {panel['id']} {panel['title']!r} {target['refId']}"
            found.append(Query(where, target["expr"], frozenset(shown)))
    for rule in alerts():
        shown = re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"])
        found.append(Query(f"alert {rule['alert']}", rule["expr"], frozenset(shown)))
    return found


def variables() -> list[tuple[str, str]]:
    """Metric and label of each ``label_values`` of the dashboard's variables."""
    texts = [one["definition"] for one in dashboard()["templating"]["list"] if one["type"] == "query"]
    return [found for text in texts for found in re.findall(r"^label_values\((\w+), (\w+)\)$", text)]


def parsed(query: str) -> Any:
    """A query, with a length of time for Grafana's variable."""
    return promql.parse(query.replace("$__rate_interval", "5m"))


def metrics(query: str) -> list[str]:
    """The names of the metrics that a query asks for, as often as it does."""
    found: list[str] = []

    def visit(node: Any) -> None:
        if isinstance(node, promql.VectorSelector):
            found.append(node.name)

    promql.walk(parsed(query), visit)
    return found


def labels(query: str, known: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """The labels that the result of a query may have. ``known`` has those of each metric. Raises ``AssertionError`` for
    a metric that is not known, and where the query selects or groups by a label that is not there."""
    return _labels(parsed(query), known)


def _labels(node: Any, known: Mapping[str, frozenset[str]]) -> frozenset[str]:
    match node:
        case promql.VectorSelector():
            return _selected(node, known)
        case promql.MatrixSelector():
            return _selected(node.vector_selector, known)
        case promql.ParenExpr() | promql.UnaryExpr() | promql.SubqueryExpr():
            return _labels(node.expr, known)
        case promql.AggregateExpr():
            return _grouped(node, known)
        case promql.Call():
            return _called(node, known)
        case promql.BinaryExpr():
            return _joined(node, known)
        case promql.NumberLiteral() | promql.StringLiteral():
            return frozenset()
    raise AssertionError(f"nobody has thought of {type(node).__name__}")


def _selected(selector: promql.VectorSelector, known: Mapping[str, frozenset[str]]) -> frozenset[str]:
    assert selector.name in known, f"no metric {selector.name}"
    has = known[selector.name] | TARGET
    wanted = {matcher.name for matcher in selector.matchers.matchers}
    assert wanted <= has, f"{selector.name} has no label {sorted(wanted - has)}"
    return has


def _grouped(node: promql.AggregateExpr, known: Mapping[str, frozenset[str]]) -> frozenset[str]:
    inner = _labels(node.expr, known)
    if node.modifier is None:
        # topk keeps the labels of what it chooses.
        return inner if str(node.op) in {"topk", "bottomk"} else frozenset()
    assert node.modifier.type == promql.AggModifierType.By, "say which labels stay, not which go"
    _all_there(node.modifier.labels, inner, node)
    return frozenset(node.modifier.labels)


def _called(node: promql.Call, known: Mapping[str, frozenset[str]]) -> frozenset[str]:
    inner = frozenset().union(*(_labels(argument, known) for argument in node.args))
    if node.func.name != "label_replace":
        return inner
    _, target, _, source, _ = (argument.val if hasattr(argument, "val") else "" for argument in node.args)
    _all_there([source], inner, node)
    return inner | {target}


def _joined(node: promql.BinaryExpr, known: Mapping[str, frozenset[str]]) -> frozenset[str]:
    left, right = _labels(node.lhs, known), _labels(node.rhs, known)
    matching = node.modifier.matching if node.modifier else None
    for side in (left, right):
        _all_there(matching.labels if matching else [], side, node)
    return left or right


def _all_there(wanted: list[str], has: frozenset[str], node: Any) -> None:
    assert set(wanted) <= has, f"{sorted(set(wanted) - has)} is no label in {node}"


def nodes(tree: Any) -> Iterator[Any]:
    """All dictionaries within a JSON document."""
    if isinstance(tree, dict):
        yield tree
        tree = list(tree.values())
    if isinstance(tree, list):
        for one in tree:
            yield from nodes(one)
