"""Pages of the public names, written from their docstrings: ``names/*.md``."""

from __future__ import annotations

from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

#: Heading and names of each page. What has no package in front of it is imported from ``pystreams``.
PAGES: dict[str, tuple[str, tuple[str, ...]]] = {
    "streams-and-tables": (
        "Streams and tables",
        (
            "KStream",
            "BranchedKStream",
            "KTable",
            "GlobalKTable",
            "KGroupedStream",
            "KGroupedTable",
            "CogroupedKStream",
            "TimeWindowedKStream",
            "SessionWindowedKStream",
            "TimeWindowedCogroupedKStream",
            "SessionWindowedCogroupedKStream",
            "agg",
            "field",
            "Expression",
        ),
    ),
    "windows": (
        "Windows",
        (
            "TimeWindows",
            "SessionWindows",
            "SlidingWindows",
            "UnlimitedWindows",
            "JoinWindows",
            "EmitStrategy",
            "Suppressed",
            "WhenFull",
            "Windowed",
        ),
    ),
    "processors-and-stores": (
        "Processors and stores",
        (
            "Processor",
            "FixedKeyProcessor",
            "ValueTransformer",
            "ProcessorContext",
            "ProcessorWrapper",
            "PunctuationType",
            "Record",
            "Change",
            "Position",
            "Stores",
        ),
    ),
    "applications": (
        "Applications",
        (
            "App",
            "Streams",
            "StreamsBuilder",
            "StreamsConfig",
            "Topology",
            "open_log",
            "StreamsError",
            "ConfigError",
            "TopologyError",
        ),
    ),
    "types": (
        "Types",
        ("Serde", "JsonSerde", "MsgpackSerde", "TimeWindowedSerde", "SessionWindowedSerde"),
    ),
    "testing": (
        "Tests",
        (
            "testing.TopologyTestDriver",
            "testing.InputTopic",
            "testing.OutputTopic",
            "testing.ProducedRecord",
            "testing.MockProcessorContext",
            "testing.CapturedForward",
            "testing.CapturedPunctuator",
            "testing.play",
        ),
    ),
}

#: Pages of classes that programs do not call: steps make their objects.
MADE_BY_STEPS = frozenset({"streams-and-tables"})

_BEGINNING = """\
[The language](../dsl.md) explains these names, with examples.
Behind *Source* is what has the same task in Kafka Streams.
"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages."""
    for page, (heading, names) in PAGES.items():
        options = "\n    options: {merge_init_into_class: false}" if page in MADE_BY_STEPS else ""
        entries = "\n\n".join(f"::: pystreams.{name}{options}" for name in names)
        content = f"# {heading}\n\n{_BEGINNING}\n{entries}\n"
        files.append(File.generated(config, f"names/{page}.md", content=content))
    return files


def on_page_content(html: str, page: Page, **_: Any) -> str:
    """Docstrings announce code with two colons."""
    return html.replace("::</p>", ":</p>") if page.file.src_uri.startswith("names/") else html
