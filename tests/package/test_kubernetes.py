"""The manifests for Kubernetes fit each other, the images, and what pystreams serves and answers."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

import pytest
import yaml
from typer.main import get_command

from pystreams.cli.main import app as commands
from pystreams.cli.terminal.exits import Exit
from pystreams.config import StreamsConfig
from pystreams.metrics.catalogue import MEANINGS
from tests.package.build_kit import ROOT

FOLDER = ROOT / "docker" / "kubernetes"
MANIFESTS: list[dict[str, Any]] = [
    manifest for path in sorted(FOLDER.glob("*.yaml")) for manifest in yaml.safe_load_all(path.read_text())
]


def one(kind: str, name: str = "shop") -> dict[str, Any]:
    (found,) = [m for m in MANIFESTS if m["kind"] == kind and m["metadata"]["name"] == name]
    return found


def pods() -> list[dict[str, Any]]:
    """The specifications of all pods."""
    return [
        one("StatefulSet")["spec"]["template"]["spec"],
        one("Job", "shop-backfill")["spec"]["template"]["spec"],
    ]


def test_pods_are_what_the_label_of_each_selector_says():
    labels = one("StatefulSet")["spec"]["template"]["metadata"]["labels"]
    (spread,) = pods()[0]["topologySpreadConstraints"]
    selectors = [
        one("StatefulSet")["spec"]["selector"]["matchLabels"],
        one("Service")["spec"]["selector"],
        one("PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
        one("NetworkPolicy")["spec"]["podSelector"]["matchLabels"],
        spread["labelSelector"]["matchLabels"],
    ]
    assert selectors == [labels] * len(selectors)
    assert one("StatefulSet")["spec"]["serviceName"] == one("Service")["metadata"]["name"]
    target = one("ScaledObject")["spec"]["scaleTargetRef"]
    assert (target["kind"], target["name"]) == ("StatefulSet", "shop")


@pytest.mark.parametrize("pod", pods(), ids=["application", "backfill"])
def test_nothing_in_a_pod_can_do_more_than_it_must(pod):
    (container,) = pod["containers"]
    user = re.search(r"^USER (\d+)$", (ROOT / "docker" / "Dockerfile").read_text(), re.MULTILINE)
    assert user
    assert pod["securityContext"]["runAsUser"] == pod["securityContext"]["fsGroup"] == int(user[1])
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["automountServiceAccountToken"] is False
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert "limits" in container["resources"]
    mounted = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    assert set(mounted) == {"/srv/.pystreams", "/tmp"}
    claims = one("StatefulSet")["spec"]["volumeClaimTemplates"]
    there = {volume["name"] for volume in [*pod["volumes"], *(claim["metadata"] for claim in claims)]}
    assert set(mounted.values()) <= there


@pytest.mark.parametrize("pod", pods(), ids=["application", "backfill"])
def test_pods_run_commands_that_there_are_with_options_that_they_have(pod):
    (container,) = pod["containers"]
    name, *arguments = container["args"]
    command = get_command(commands).commands[name]  # type: ignore[attr-defined]
    with command.make_context(name, list(arguments)) as context:
        assert context.params["application"] == "shop"


def test_probes_ask_for_pages_that_there_are_at_the_port_where_they_are():
    (container,) = pods()[0]["containers"]
    assert {container[f"{kind}Probe"]["httpGet"]["path"] for kind in ("startup", "liveness")} == {"/live"}
    assert container["readinessProbe"]["httpGet"]["path"] == "/ready"
    (port,) = container["ports"]
    assert container["args"][container["args"].index("--http") + 1] == f"0.0.0.0:{port['containerPort']}"
    assert one("Service")["spec"]["ports"][0]["targetPort"] == port["name"]
    (allowed,) = one("NetworkPolicy")["spec"]["ingress"]
    assert allowed["ports"] == [{"protocol": "TCP", "port": port["name"]}]


def test_the_environment_names_settings():
    (container,) = pods()[0]["containers"]
    assert [entry["name"] for entry in container["env"]] == ["PYSTREAMS_GROUP_INSTANCE_ID"]
    assert "group_instance_id" in {field.name for field in fields(StreamsConfig)}


def test_codes_after_which_no_attempt_helps_are_those_of_mistakes():
    (rule,) = one("Job", "shop-backfill")["spec"]["podFailurePolicy"]["rules"]
    assert set(rule["onExitCodes"]["values"]) == {Exit.USAGE, Exit.APPLICATION}


def test_what_decides_the_number_of_pods_is_a_metric_that_there_is():
    (trigger,) = one("ScaledObject")["spec"]["triggers"]
    (metric,) = re.findall(r"sum\((\w+)\{job=\"shop\"\}\)", trigger["metadata"]["query"])
    names = {f"{group}_{name}".replace("-", "_") for group, name in MEANINGS}
    assert any(metric.endswith(name) for name in names)
