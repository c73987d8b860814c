"""Each alert rule leads to its section of the manual, and fires when it should and not before."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.docs.manual import DOCS, sections
from tests.serving.promql_kit import ALERTS, ROOT, alerts

PAGE = "how-to/alerts"
CONFIGURATION = ROOT / "docker" / "prometheus" / "prometheus.yaml"
CASES = Path(__file__).parent / "alert_cases.yaml"
PARTS = ("**Means**: ", "**Look**: ", "**Do**: ")

NAMES = [rule["alert"] for rule in alerts()]


@pytest.fixture
def promtool() -> str:
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("promtool, a part of Prometheus, is not installed")
    return found


def test_each_alert_has_a_section_that_says_what_it_means_how_to_look_and_what_to_do() -> None:
    page = {section.heading: section for section in sections(DOCS / f"{PAGE}.md") if section.level == 2}
    assert list(page) == NAMES
    for section in page.values():
        begins = [line for line in section.lines if line.startswith("**")]
        assert [part for part in PARTS if any(line.startswith(part) for line in begins)] == list(PARTS)
        assert len(begins) == len(PARTS), section.heading


@pytest.mark.parametrize("rule", alerts(), ids=NAMES)
def test_an_alert_leads_to_its_section_and_says_how_urgent_it_is(rule) -> None:
    # Pages are files (mkdocs.yml), and anchors are headings in lower case.
    assert rule["annotations"]["runbook_url"] == f"{PAGE}.html#{rule['alert'].lower()}"
    assert rule["labels"]["severity"] in {"critical", "warning"}
    assert rule["annotations"]["summary"]


def test_the_site_has_the_page_where_the_alerts_lead() -> None:
    configuration = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert f"- {PAGE}.md\n" in configuration
    assert "use_directory_urls: false" in configuration


def test_there_is_a_case_for_each_alert() -> None:
    """Those that follow are for machines with Prometheus."""
    named = re.findall(r"alertname: (\w+)$", CASES.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert set(named) == set(NAMES)


def test_the_prometheus_of_the_compose_file_has_the_rules() -> None:
    configuration = yaml.safe_load(CONFIGURATION.read_text(encoding="utf-8"))
    compose = yaml.safe_load((ROOT / "docker" / "compose.yaml").read_text(encoding="utf-8"))
    mounted = dict(volume.split(":")[1::-1] for volume in compose["services"]["prometheus"]["volumes"])
    (rules,) = configuration["rule_files"]
    folder, _, name = rules.rpartition("/")
    assert (ROOT / "docker" / mounted[folder] / name).resolve() == ALERTS


def test_prometheus_takes_the_rules_and_its_configuration(promtool: str, tmp_path: Path) -> None:
    here = tmp_path / "prometheus.yaml"
    configuration = CONFIGURATION.read_text(encoding="utf-8")
    here.write_text(configuration.replace("/etc/pystreams/alerts.yaml", str(ALERTS)), encoding="utf-8")
    for command, path in (("rules", ALERTS), ("config", here)):
        done = subprocess.run([promtool, "check", command, path], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_alerts_fire_when_they_should_and_not_before(promtool: str) -> None:
    done = subprocess.run([promtool, "test", "rules", CASES], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
