"""``pystreams monitoring``: prints the dashboard for Grafana, and the alert rules for Prometheus."""

from __future__ import annotations

from importlib.resources import files

import typer

monitoring_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Print the dashboard for Grafana, and the alert rules for Prometheus: [bold]pystreams monitoring dashboard "
    "> dashboard.json[/]",
)


@monitoring_app.command()
def dashboard() -> None:
    """Print the dashboard for Grafana, as JSON.

    Import it in Grafana, and choose the data source and the application above
    the panels. It shows what run serves with --http.

    [bold]pystreams monitoring dashboard > dashboard.json[/]
    """
    _print("dashboard.json")


@monitoring_app.command()
def alerts() -> None:
    """Print the alert rules for Prometheus, as YAML.

    Put the file where the rule_files of Prometheus' configuration name it.

    [bold]pystreams monitoring alerts > alerts.yaml[/]
    """
    _print("alerts.yaml")


def _print(name: str) -> None:
    file = files("pystreams.cli.commands.monitoring") / "files" / name
    print(file.read_text(encoding="utf-8"), end="")
