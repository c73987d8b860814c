"""What is said to container engines makes sense, as far as can be seen without one: images are built from files that
are there, on a Python that pystreams runs on; a broker that others can reach starts before they do."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.specifiers import SpecifierSet

from pystreams.cli.commands.init import project_files
from pystreams.cli.main import command_for
from pystreams.serving.token import read_token
from tests.cli.workers.workers_kit import WorkersRun
from tests.kafka.server import free_port
from tests.linux import children
from tests.live.support import eventually
from tests.package.build_kit import ROOT

PYTHONS = SpecifierSet(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"])


@dataclass
class Containers:
    """A project with its image and its services."""

    root: Path
    dockerfile: str
    compose: dict[str, Any]

    @property
    def services(self) -> dict[str, dict[str, Any]]:
        return self.compose["services"]

    @property
    def own_services(self) -> dict[str, dict[str, Any]]:
        """Those that run the project's own image."""
        return {name: service for name, service in self.services.items() if "build" in service}

    def instructions(self, name: str) -> list[str]:
        """The arguments of a Dockerfile's instructions of that name."""
        joined = self.dockerfile.replace("\\\n", " ")
        return re.findall(rf"^{name} (.*)$", joined, flags=re.MULTILINE)

    @property
    def health_check(self) -> list[str]:
        """The command by which the image is found to be healthy."""
        (check,) = self.instructions("HEALTHCHECK")
        command: list[str] = json.loads(check.partition(" CMD ")[2])
        assert command[0] == "python"
        return command

    @property
    def variables(self) -> dict[str, str]:
        """What the image puts into the environment."""
        return dict(item.split("=") for line in self.instructions("ENV") for item in line.split())

    def ports(self, service: str) -> list[tuple[str, str, str]]:
        """Those that are published: address, port or range of ports on this machine, port of the container."""
        published = []
        for port in self.services[service].get("ports", []):
            if isinstance(port, dict):
                published.append((port["host_ip"], port["published"], str(port["target"])))
            else:
                host, outside, inside = port.split(":")
                published.append((host, outside, inside))
        return published

    def command(self, service: str) -> list[str]:
        """What a container of the project's own image runs."""
        (entrypoint,) = self.instructions("ENTRYPOINT") or ["[]"]
        (command,) = self.instructions("CMD")
        said = self.services[service]
        return [*said.get("entrypoint", json.loads(entrypoint)), *said.get("command", json.loads(command))]


def own() -> Containers:
    folder = ROOT / "docker"
    return Containers(
        ROOT, (folder / "Dockerfile").read_text(), read_yaml((folder / "compose.yaml").read_text())
    )


def made(folder: Path) -> Containers:
    """Those of a project that ``pystreams init`` makes."""
    files = dict(project_files("shop"))
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return Containers(folder, files["Dockerfile"], read_yaml(files["compose.yaml"]))


def read_yaml(text: str) -> dict[str, Any]:
    return yaml.safe_load(text)


@pytest.fixture(params=["own", "made"])
def containers(request: pytest.FixtureRequest, tmp_path: Path) -> Containers:
    return own() if request.param == "own" else made(tmp_path)


def test_images_are_of_a_python_that_pystreams_runs_on(containers):
    images = containers.instructions("FROM")
    assert images
    for image in images:
        version = re.fullmatch(r"python:(\d+\.\d+)-slim( AS \w+)?", image)
        assert version, image
        assert PYTHONS.contains(f"{version[1]}.0")


def test_what_images_take_is_there_and_not_ignored(containers):
    ignored = (containers.root / ".dockerignore").read_text().splitlines()
    taken = [
        source
        for line in containers.instructions("COPY")
        if "--from" not in line
        for source in line.split()[:-1]
    ]
    assert "pyproject.toml" in taken
    for source in taken:
        assert (containers.root / source).exists(), source
        assert source not in ignored


def test_all_that_an_installation_reads_is_in_the_image(containers):
    project = tomllib.loads((containers.root / "pyproject.toml").read_text())
    read = [*project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]]
    read += [project["project"]["readme"]] if "readme" in project["project"] else []
    read += project["project"].get("license-files", [])
    taken = " ".join(containers.instructions("COPY")).split()
    assert set(read) <= set(taken)


def test_nothing_runs_as_root_and_state_is_on_a_volume(containers):
    assert len(containers.instructions("USER")) == 1
    assert containers.instructions("VOLUME") == ["/srv/.pystreams"]
    assert containers.instructions("WORKDIR")[-1] == "/srv"


def test_the_application_writes_to_its_volume_and_to_tmp_alone(containers):
    app = containers.services["app"]
    assert app["read_only"] is True
    assert app["tmpfs"] == ["/tmp"]
    assert app["cap_drop"] == ["ALL"]
    assert containers.variables["PYTHONDONTWRITEBYTECODE"] == "1"


def test_what_is_published_is_for_this_machine_alone(containers):
    hosts = [host for name in containers.services for host, _, _ in containers.ports(name)]
    assert hosts
    assert set(hosts) == {"127.0.0.1"}


def test_services_wait_for_what_there_is(containers):
    for name, service in containers.services.items():
        for other, when in service.get("depends_on", {}).items():
            needed = containers.services[other]
            match when["condition"]:
                case "service_healthy":
                    assert "healthcheck" in needed, f"{name} waits for {other}"
                case "service_completed_successfully":
                    assert "restart" not in needed, f"{name} waits for the end of {other}"
                case condition:
                    assert condition == "service_started"
    assert containers.services["app"]["depends_on"]


def test_the_broker_is_reached_where_it_listens(containers):
    broker = containers.services["broker"]["environment"]
    advertised = dict(item.split("://") for item in broker["KAFKA_ADVERTISED_LISTENERS"].split(","))
    listening = dict(item.split("://") for item in broker["KAFKA_LISTENERS"].split(","))
    protocols = dict(item.split(":") for item in broker["KAFKA_LISTENER_SECURITY_PROTOCOL_MAP"].split(","))
    assert set(listening) == set(protocols) == {*advertised, broker["KAFKA_CONTROLLER_LISTENER_NAMES"]}
    assert broker["KAFKA_INTER_BROKER_LISTENER_NAME"] in advertised
    assert {name: address.rpartition(":")[2] for name, address in advertised.items()}.items() <= {
        name: address.rpartition(":")[2] for name, address in listening.items()
    }.items()
    voter = broker["KAFKA_CONTROLLER_QUORUM_VOTERS"]
    assert voter == f"{broker['KAFKA_NODE_ID']}@broker{listening['CONTROLLER']}"
    servers = {
        service["environment"]["PYSTREAMS_BOOTSTRAP_SERVERS"]
        for name, service in containers.own_services.items()
        if name != "token"
    }
    assert servers == {advertised["INSIDE"]}
    assert (
        advertised["OUTSIDE"].replace("localhost", "127.0.0.1:9092") in containers.services["broker"]["ports"]
    )


def test_volumes_that_are_named_are_declared(containers):
    named = {
        volume.partition(":")[0]
        for service in containers.services.values()
        for volume in service.get("volumes", [])
        if not volume.startswith((".", "/"))
    }
    assert named == set(containers.compose["volumes"])


def test_folders_that_are_mounted_exist(containers):
    compose_folder = ROOT / "docker" if containers.root == ROOT else containers.root
    for service in containers.services.values():
        for volume in service.get("volumes", []):
            if volume.startswith("."):
                assert (compose_folder / volume.partition(":")[0]).is_dir()


def test_services_run_commands_that_there_are(containers):
    assert containers.own_services
    for name in containers.own_services:
        program, *arguments = containers.command(name)
        if program == "pystreams":
            assert arguments[0] in command_for([]).commands
        elif name != "token":
            assert [program, arguments[0]] == ["python", "-m"]
            assert (containers.root / f"{arguments[1].replace('.', '/')}.py").is_file()


def make_token(containers: Containers, folder: Path) -> Path:
    """The file that the application is told to read, made in ``folder`` by the command of the compose file."""
    named = Path(containers.services["app"]["environment"]["PYSTREAMS_HTTP_TOKEN_FILE"])
    shared = f"token:{named.parent}"
    assert shared in containers.services["token"]["volumes"]
    assert f"{shared}:ro" in containers.services["app"]["volumes"]
    command = [part.replace(str(named.parent), str(folder)) for part in containers.command("token")]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(command, check=True, env={**os.environ, "PATH": path})
    return folder / named.name


def test_the_token_is_made_once_for_the_user_of_the_image_alone(containers, tmp_path):
    token = read_token(make_token(containers, tmp_path))
    assert make_token(containers, tmp_path).read_text().strip() == token
    assert make_token(containers, tmp_path).stat().st_mode & 0o077 == 0
    waits_for = containers.services["app"]["depends_on"]["token"]["condition"]
    assert waits_for == "service_completed_successfully"
    # A new volume gets its owner from the folder of the image.
    owned = re.findall(r"--owner \w+ --mode 0750 (.*?) *(?:&&|$)", " ".join(containers.instructions("RUN")))
    assert "/run/pystreams" in owned[0].split()


def test_the_live_page_is_published_for_this_machine(containers):
    ((_, outside, inside),) = containers.ports("app")
    assert outside.partition("-")[0] == "8080"
    assert containers.variables["PYSTREAMS_HTTP"] == f"0.0.0.0:{inside}"
    assert containers.variables["PYSTREAMS_URL"] == inside


def test_the_topics_of_our_own_compose_file_can_be_created_twice(tmp_path):
    command = own().command("topics")
    for _ in range(2):
        subprocess.run(
            [sys.executable, "-m", *command], cwd=tmp_path, check=True, env={"PYTHONPATH": str(ROOT)}
        )


def test_our_own_application_is_healthy_and_asked_for_keys_as_its_image_says_and_scraped_there(tmp_path):
    """The command of the compose file and the check of the image, on the embedded log and another port."""
    containers, port = own(), str(free_port())
    command = [part.replace("8080", port) for part in containers.command("app")]
    check = [part.replace("8080", port) for part in containers.health_check]
    scraped = read_yaml((ROOT / "docker" / "prometheus" / "prometheus.yaml").read_text())["scrape_configs"]
    assert [job["static_configs"] for job in scraped] == [[{"targets": ["app:8080"]}]]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for topic in ("lines", "word-counts"):
        create = [sys.executable, "-m", "pystreams", "topics", "create", topic]
        subprocess.run(create, cwd=tmp_path, env=environment, check=True)
    environment |= {name: value.replace("8080", port) for name, value in containers.variables.items()}
    environment["PYSTREAMS_HTTP_TOKEN_FILE"] = str(make_token(containers, tmp_path))
    get = [sys.executable, "-m", "pystreams", "get", "apps.wordcount", "counts", "be"]
    with subprocess.Popen([sys.executable, "-m", *command], cwd=tmp_path, env=environment) as running:
        try:

            def healthy() -> bool:
                assert running.poll() is None
                asked = [sys.executable, *check[1:]]
                return subprocess.run(asked, stderr=subprocess.DEVNULL, check=False).returncode == 0

            eventually(healthy, "the health check succeeds")

            def answered() -> bool:
                """With the token and the address of the environment, as in the container."""
                asked = subprocess.run(
                    get, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
                )
                return "nothing under the key 'be'" in asked.stderr

            eventually(answered, "the key is asked for")
        finally:
            running.terminate()
    assert running.returncode == 0


def test_as_process_1_it_ends_on_sigterm_and_has_committed(tmp_path):
    """As in a container: the kernel drops signals for which process 1 has no handler."""
    alone = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child"]
    if shutil.which("unshare") is None or subprocess.run([*alone, "true"], check=False).returncode:
        pytest.skip("needs a namespace of processes")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    create = [sys.executable, "-m", "pystreams", "topics", "create", "lines", "word-counts"]
    subprocess.run(create, cwd=tmp_path, env=environment, check=True)
    run = WorkersRun(tmp_path, "apps.wordcount", "--verbose", under=alone)
    try:
        run.says("REBALANCING -> RUNNING")
        (first,) = children(run.process.pid)
        assert Path(f"/proc/{first}/status").read_text().split("NSpid:")[1].split()[:2] == [str(first), "1"]
        os.kill(first, signal.SIGTERM)
        run.ends_with(0)
        assert "all is committed" in run.text
    finally:
        run.close()
