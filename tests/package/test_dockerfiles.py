"""All Dockerfiles keep the rules of linters for them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from pystreams.cli.commands.init import project_files
from tests.docs.manual import DOCS
from tests.package.build_kit import ROOT

DOCKERFILES = {str(path.relative_to(ROOT)): path.read_text() for path in (ROOT / "docker").glob("*ockerfile")}
DOCKERFILES["of pystreams init"] = dict(project_files("shop"))["Dockerfile"]
(DOCKERFILES["in deploying.md"],) = re.findall(
    r"^```dockerfile\n(.*?)^```", (DOCS / "how-to" / "deploying.md").read_text(), re.MULTILINE | re.DOTALL
)


@pytest.fixture(params=sorted(DOCKERFILES))
def lines(request: pytest.FixtureRequest) -> list[str]:
    """The instructions, one a line."""
    text = re.sub(r"^#.*\n", "", DOCKERFILES[request.param], flags=re.MULTILINE)
    return [line for line in text.replace("\\\n", " ").splitlines() if line.strip()]


def arguments(lines: list[str], name: str) -> list[str]:
    return [line.removeprefix(f"{name} ") for line in lines if line.startswith(f"{name} ")]


def last_stage(lines: list[str]) -> list[str]:
    start = max(number for number, line in enumerate(lines) if line.startswith("FROM "))
    return lines[start:]


def test_images_have_a_version(lines):
    for image in arguments(lines, "FROM"):
        assert re.fullmatch(r"[\w./-]+:\d[\w.-]*( AS \w+)?", image)


def test_what_runs_is_a_user_by_number_which_kubernetes_can_check(lines):
    (user,) = arguments(last_stage(lines), "USER") or [""]
    assert user.isdigit()
    assert int(user) >= 10_000
    assert any(f"--uid {user} " in line for line in lines)


def test_no_shell_stands_between_the_engine_and_the_program(lines):
    started = [*arguments(lines, "ENTRYPOINT"), *arguments(lines, "CMD")]
    assert started
    assert "pystreams" in [part for command in started for part in json.loads(command)]


def test_packages_of_the_system_leave_no_lists_and_pip_no_cache(lines):
    for line in arguments(lines, "RUN"):
        if "apt-get install" in line:
            assert "--no-install-recommends" in line
            assert "rm -rf /var/lib/apt/lists/*" in line
        if "pip" in line:
            assert "--no-cache-dir" in line


def test_nothing_is_fetched_from_elsewhere_and_no_secret_is_built_in(lines):
    assert arguments(lines, "ADD") == []
    assert [line for line in lines if re.search(r"curl|wget|sudo|PASSWORD|SECRET|TOKEN", line)] == []


def test_the_folder_of_state_is_the_users_own(lines):
    (volume,) = arguments(lines, "VOLUME")
    assert volume == "/srv/.pystreams"
    assert any(
        re.search(r"install --directory --owner \w+ --mode 0750 (/srv/)?\.pystreams", line) for line in lines
    )


def test_what_serves_pages_is_asked_for_its_health(lines):
    serves = any("PYSTREAMS_HTTP=" in line or "--http" in line for line in lines)
    assert serves == bool(arguments(lines, "HEALTHCHECK"))


def test_every_dockerfile_is_looked_at() -> None:
    assert {Path(name).name for name in DOCKERFILES} >= {"Dockerfile", "spark.Dockerfile"}
