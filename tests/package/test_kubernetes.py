"""The manifests for Kubernetes fit each other, the images, and what pystreams serves and answers."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from pystreams.cli.main import command_for
from pystreams.cli.terminal.exits import Exit
from pystreams.config import StreamsConfig
from pystreams.metrics.catalogue import MEANINGS
from pystreams.serving.address import Address
from pystreams.serving.lag import Lag
from pystreams.serving.server import HttpServer
from pystreams.serving.token import read_token
from tests.package.build_kit import ROOT
from tests.serving.http_kit import get

FOLDER = ROOT / "docker" / "kubernetes"
MANIFESTS: list[dict[str, Any]] = [
    manifest for path in sorted(FOLDER.glob("*.yaml")) for manifest in yaml.safe_load_all(path.read_text())
]


def one(kind: str, name: str = "shop") -> dict[str, Any]:
    (found,) = [m for m in MANIFESTS if m["kind"] == kind and m["metadata"]["name"] == name]
    return found


def scaled() -> dict[str, dict[str, Any]]:
    """The ways to choose the number of pods, by the type of their triggers."""
    specs = [m["spec"] for m in MANIFESTS if m["kind"] == "ScaledObject" and m["metadata"]["name"] == "shop"]
    return {trigger["type"]: spec for spec in specs for trigger in spec["triggers"]}


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
    for spec in scaled().values():
        target = spec["scaleTargetRef"]
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
    assert set(mounted) - {"/run/pystreams"} == {"/srv/.pystreams", "/tmp"}
    claims = one("StatefulSet")["spec"]["volumeClaimTemplates"]
    there = {volume["name"] for volume in [*pod["volumes"], *(claim["metadata"] for claim in claims)]}
    assert set(mounted.values()) <= there


@pytest.mark.parametrize("pod", pods(), ids=["application", "backfill"])
def test_pods_run_commands_that_there_are_with_options_that_they_have(pod):
    (container,) = pod["containers"]
    name, *arguments = container["args"]
    command = command_for([]).commands[name]
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


def environment() -> dict[str, str]:
    """The variables of the pod ``shop-0``, as the kubelet fills them in."""
    (container,) = pods()[0]["containers"]
    variables: dict[str, str] = {}
    for entry in container["env"]:
        if "valueFrom" in entry:
            assert entry["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.name"}}
            variables[entry["name"]] = f"{one('StatefulSet')['metadata']['name']}-0"
        else:
            # Of the variables before this one.
            variables[entry["name"]] = re.sub(
                r"\$\((\w+)\)", lambda found: variables[found[1]], entry["value"]
            )
    return variables


def test_the_environment_names_settings_and_options():
    settings = {field.name for field in fields(StreamsConfig)}
    options = {
        str(option.envvar)
        for command in ("run", "get")
        for option in command_for([]).commands[command].params
    }
    for name in environment():
        assert name in options or name.removeprefix("PYSTREAMS_").lower() in settings
    assert environment()["PYSTREAMS_GROUP_INSTANCE_ID"] == "shop-0"


def test_pods_serve_stores_and_the_live_page_with_a_token_that_they_may_read(tmp_path):
    """The file that the pod's secret becomes is the one that ``run`` is told to read, and opens its address."""
    (container,) = pods()[0]["containers"]
    mounts = {mount["name"]: mount for mount in container["volumeMounts"]}
    secret = next(volume["secret"] for volume in pods()[0]["volumes"] if volume["name"] == "http")
    file = PurePosixPath(environment()["PYSTREAMS_HTTP_TOKEN_FILE"])
    assert str(file.parent) == mounts["http"]["mountPath"]
    assert mounts["http"]["readOnly"] is True
    made = dict(
        re.findall(
            r"^# kubectl create secret generic (\S+) --from-literal=(\w+)=",
            (FOLDER / "shop.yaml").read_text(),
            re.MULTILINE,
        )
    )
    assert made[secret["secretName"]] == file.name
    # For the group of the pod, which is that of its process, and nobody else.
    assert secret["defaultMode"] == 0o440
    token = tmp_path / file.name
    token.write_text(64 * "a")
    token.chmod(secret["defaultMode"])
    address = Address.parse(container["args"][container["args"].index("--http") + 1])
    with HttpServer(replace(address, port=0), Behind(), token=read_token(token)) as server:
        assert not server.closed


def test_a_pod_that_cannot_commit_says_so_before_it_is_killed():
    killed_after_ms = 1000 * pods()[0]["terminationGracePeriodSeconds"]
    assert int(environment()["PYSTREAMS_CLOSE_TIMEOUT_MS"]) <= killed_after_ms - 5_000


def test_pods_ask_each_other_at_a_name_that_the_service_gives_them():
    name, _, port = environment()["PYSTREAMS_APPLICATION_SERVER"].partition(":")
    pod, service = name.split(".")
    assert pod == environment()["PYSTREAMS_GROUP_INSTANCE_ID"]
    assert service == one("StatefulSet")["spec"]["serviceName"]
    assert one("Service")["spec"]["clusterIP"] == "None"
    # A pod that restores is asked for what its standbys have.
    assert one("Service")["spec"]["publishNotReadyAddresses"] is True
    (container,) = pods()[0]["containers"]
    assert int(port) == container["ports"][0]["containerPort"]
    assert environment()["PYSTREAMS_URL"] == port


def test_the_network_lets_pods_ask_each_other():
    policy = one("NetworkPolicy")["spec"]
    of_pods = {"podSelector": one("NetworkPolicy")["spec"]["podSelector"]}
    port = {"protocol": "TCP", "port": "http"}
    assert any(of_pods in rule["from"] and port in rule["ports"] for rule in policy["ingress"])
    assert any(of_pods in rule.get("to", []) and port in rule["ports"] for rule in policy["egress"])


def test_codes_after_which_no_attempt_helps_are_those_of_mistakes():
    (rule,) = one("Job", "shop-backfill")["spec"]["podFailurePolicy"]["rules"]
    assert set(rule["onExitCodes"]["values"]) == {Exit.USAGE, Exit.APPLICATION}


def test_each_way_to_choose_the_number_of_pods_differs_in_its_trigger_alone():
    """They have one name, so that one replaces the other: KEDA refuses two for the same pods."""
    by_metric, by_page = (
        {**spec, "triggers": None} for spec in (scaled()["prometheus"], scaled()["metrics-api"])
    )
    assert by_metric == by_page


def test_the_page_that_decides_the_number_of_pods_is_served_without_a_token_and_has_a_number():
    (trigger,) = scaled()["metrics-api"]["triggers"]
    url = urlsplit(trigger["metadata"]["url"])
    (port,) = one("Service")["spec"]["ports"]
    assert url.hostname
    assert (url.scheme, url.hostname.partition(".")[0], url.port) == ("http", "shop", port["port"])
    watched = Behind()
    with HttpServer(Address("127.0.0.1", 0), watched, token="a secret") as server:
        assert get(server.address, url.path).json[trigger["metadata"]["valueLocation"]] == 7
        watched.known = Lag(None, why="the log has not answered yet")
        # KEDA takes anything but 200 for an error, and leaves the pods as they are.
        page = get(server.address, url.path)
        assert page.status == 503
        assert trigger["metadata"]["valueLocation"] not in page.json


class Behind:
    """An application of which only the lag is known."""

    def __init__(self) -> None:
        self.known = Lag(7, {"orders": 7}, 1)

    def application_id(self) -> str:
        return "shop"

    def lag(self) -> Lag:
        return self.known


def test_keda_may_come_in():
    (allowed,) = one("NetworkPolicy")["spec"]["ingress"]
    names = [
        place["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"]
        for place in allowed["from"]
        if "namespaceSelector" in place
    ]
    assert names == ["monitoring", "keda"]


def test_what_decides_the_number_of_pods_is_a_metric_that_there_is():
    (trigger,) = scaled()["prometheus"]["triggers"]
    (metric,) = re.findall(r"sum\((\w+)\{job=\"shop\"\}\)", trigger["metadata"]["query"])
    names = {f"{group}_{name}".replace("-", "_") for group, name in MEANINGS}
    assert any(metric.endswith(name) for name in names)
