"""``pystreams describe``: the topology as text, picture or code."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pystreams.cli.options import (
    ApplicationArgument,
    ApplicationIdOption,
    BootstrapServersOption,
    EmbeddedLogOption,
    SetOption,
)
from pystreams.cli.terminal.console import note, output
from pystreams.errors import TopologyError

if TYPE_CHECKING:
    from pystreams.topology.built import BuiltTopology


class DescribeFormat(StrEnum):
    """How to show a topology."""

    TEXT = "text"
    MERMAID = "mermaid"
    CODE = "code"
    SVG = "svg"
    JSON = "json"


def describe(
    application: ApplicationArgument,
    format_: Annotated[
        DescribeFormat,
        typer.Option(
            "--format",
            "-f",
            help="[bold]text[/]: as Java's Topology.describe() prints it. [bold]mermaid[/]: a flowchart."
            " [bold]svg[/]: a picture, for a browser."
            " [bold]code[/]: the Python that each sub-topology compiles to."
            " [bold]json[/]: for [bold]pystreams diff[/].",
        ),
    ] = DescribeFormat.TEXT,
    late: Annotated[
        bool,
        typer.Option(
            "--late",
            help="Instead, ask the log how many records were too late for the windows of each step so far, and "
            "which grace would have kept them.",
        ),
    ] = False,
    application_id: ApplicationIdOption = None,
    setting: SetOption = None,
    embedded_log: EmbeddedLogOption = None,
    bootstrap_servers: BootstrapServersOption = None,
) -> None:
    """Show an application's topology, without running it. Only --late connects to the log.

    [bold]pystreams describe apps.wordcount --format code[/]

    [bold]pystreams describe apps.wordcount --late[/]
    """
    from pystreams.cli.application.loading import load_application

    app = load_application(application)
    if late:
        from pystreams.cli.application.settings import settings_of
        from pystreams.cli.commands.late_records import show_late

        log: dict[str, Any] = {"embedded_log": embedded_log, "bootstrap_servers": bootstrap_servers}
        show_late(app, settings_of(app, setting, application_id=application_id, **log))
    elif format_ is DescribeFormat.TEXT:
        _print_text(app, setting)
    elif format_ is DescribeFormat.MERMAID:
        print(describe_mermaid(app, setting))
    elif format_ is DescribeFormat.SVG:
        print(describe_svg(app, setting))
    elif format_ is DescribeFormat.JSON:
        print(describe_json(app, setting))
    else:
        _print_code(describe_code(app, setting))


def describe_json(app: Any, setting: list[str] | None = None) -> str:
    """The description of the topology that ``pystreams diff`` compares."""
    from pystreams.topology.fingerprint import shape

    built = _build(app, setting)
    topology = shape(built)
    return json.dumps({"application_id": built.application_id, "topology": topology}, indent=1)


def describe_mermaid(app: Any, setting: list[str] | None = None) -> str:
    """A Mermaid flowchart."""
    from pystreams.topology.picture.mermaid import mermaid

    return mermaid(_build(app, setting))


def describe_svg(app: Any, setting: list[str] | None = None) -> str:
    """A picture."""
    from pystreams.topology.picture import picture

    built = _build(app, setting)
    filling = [(store.source, store.processor) for store in built.global_stores]
    return picture(built.application_id, [sub.nodes for sub in built.subtopologies], filling)


def describe_code(app: Any, setting: list[str] | None = None) -> str:
    """The generated source of all sub-topologies, one after the other."""
    from pystreams.engine.codegen import compile_nodes

    built = _build(app, setting)
    return "\n\n".join(
        compile_nodes(sub.nodes, f"<{built.application_id} sub-topology {sub.id}>").source.strip()
        for sub in built.subtopologies
    )


def _build(app: Any, setting: list[str] | None) -> BuiltTopology:
    from pystreams.cli.application.settings import settings_of
    from pystreams.dsl.builder import build_topology

    return build_topology(app, settings_of(app, setting, default_id="application"))


def _print_text(app: Any, setting: list[str] | None) -> None:
    """Java's text. A program that lacks types has one, too; a remark says what is missing to run it, or that records
    go round in a circle."""
    from pystreams.cli.application.settings import settings_of
    from pystreams.dsl.builder import built_under, topology_of
    from pystreams.topology.circles import circles, in_words

    config = settings_of(app, setting, default_id="application")
    topology = topology_of(app, config)
    print(topology.describe().rstrip())
    try:
        built = built_under(topology, config)
    except TopologyError as error:
        note(f"pystreams run refuses this program: {error}")
        return
    for circle in circles(built.subtopologies):
        note(in_words(circle))


def _print_code(source: str) -> None:
    console = output()
    if not console.is_terminal:
        print(source)
        return
    from rich.syntax import Syntax

    console.print(Syntax(source, "python", background_color="default"))
