"""The dashboard is one that Grafana shows as it is meant: panels beside each other, with units, of the data source that
the user chooses, and provisioned where the compose file says."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pytest
import yaml

from tests.serving.promql_kit import DASHBOARD, ROOT, dashboard, metrics, nodes

GRID_COLUMNS = 24

#: Those that are meant here; Grafana shows an unknown unit as a suffix.
UNITS = {"bytes", "cps", "ms", "none", "percentunit", "s", "short"}

PANELS = dashboard()["panels"]
SHOWN = [panel for panel in PANELS if panel["type"] != "row"]
PROVISIONED = ROOT / "docker" / "grafana" / "provisioning"


def test_no_panel_has_the_number_of_another() -> None:
    numbers = Counter(panel["id"] for panel in PANELS)
    assert numbers
    assert set(numbers.values()) == {1}


def cells(panel: dict[str, Any]) -> set[tuple[int, int]]:
    place = panel["gridPos"]
    columns = range(place["x"], place["x"] + place["w"])
    return set(itertools.product(columns, range(place["y"], place["y"] + place["h"])))


def test_panels_stay_within_the_grid_and_cover_no_other() -> None:
    taken: Counter[tuple[int, int]] = Counter()
    for panel in PANELS:
        taken.update(cells(panel))
        assert cells(panel), panel["title"]
    assert {column for column, _ in taken} == set(range(GRID_COLUMNS))
    assert set(taken.values()) == {1}


@pytest.mark.parametrize("panel", SHOWN, ids=lambda panel: f"{panel['id']} {panel['title']}")
def test_a_panel_says_what_it_shows_in_which_unit_for_the_application_that_is_chosen(panel) -> None:
    assert panel["title"]
    assert panel["description"]
    assert panel["fieldConfig"]["defaults"]["unit"] in UNITS
    references = [target["refId"] for target in panel["targets"]]
    assert references == sorted(set(references))
    for target in panel["targets"]:
        assert target["expr"].count('{job=~"$job"}') == len(metrics(target["expr"]))
        assert len(panel["targets"]) == 1 or target["legendFormat"]


def test_everything_is_asked_of_the_data_source_that_the_user_chooses() -> None:
    kinds = {one["name"]: one for one in dashboard()["templating"]["list"]}
    assert (kinds["datasource"]["type"], kinds["datasource"]["query"]) == ("datasource", "prometheus")
    asked = [node["datasource"] for node in nodes(dashboard()) if "datasource" in node]
    assert len(asked) > len(SHOWN)
    assert all(one == {"type": "prometheus", "uid": "${datasource}"} for one in asked)


def test_grafana_finds_it_and_its_data_source_at_its_start() -> None:
    (source,) = yaml.safe_load((PROVISIONED / "datasources" / "prometheus.yaml").read_text())["datasources"]
    (provider,) = yaml.safe_load((PROVISIONED / "dashboards" / "pystreams.yaml").read_text())["providers"]
    compose = yaml.safe_load((ROOT / "docker" / "compose.yaml").read_text())
    mounted = dict(volume.split(":")[:2] for volume in compose["services"]["grafana"]["volumes"])
    folder = DASHBOARD.parent.relative_to(ROOT).as_posix()
    assert mounted[f"../{folder}"] == provider["options"]["path"]
    assert mounted["./grafana/provisioning"] == "/etc/grafana/provisioning"
    host, _, port = source["url"].removeprefix("http://").partition(":")
    assert (source["type"], host in compose["services"], port) == ("prometheus", True, "9090")
