"""``pystreams snapshots``: the snapshots of tasks' stores that are in a folder, and whether they are whole."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from pystreams.cli.terminal.console import note, show_table
from pystreams.cli.terminal.exits import Exit
from pystreams.errors import StateCorruptedError, StateError, StreamsError

if TYPE_CHECKING:
    from pystreams.state.snapshots.folder import SnapshotFolder
    from pystreams.state.snapshots.manifest import Manifest


class _Found(NamedTuple):
    """A row of the table; ``whole`` is False for a snapshot that cannot be used."""

    cells: list[str]
    whole: bool


def snapshots(
    folder: Annotated[
        str,
        typer.Argument(
            metavar="DIR", help="The application's setting state_snapshot_dir.", show_default=False
        ),
    ],
    verify: Annotated[
        bool, typer.Option("--verify", help="Read all files, and compare them with their digests.")
    ] = False,
) -> None:
    """List the snapshots of tasks' stores in a folder, or at a URL that fsspec knows.

    For each: the application, the task, when it was taken, the offsets of
    the changelogs up to which it holds the stores, its size, and whether it
    is whole: its files are there with their sizes, or, with [bold]--verify[/], with
    their contents. Exit code 1 says that one is not.

    [bold]pystreams snapshots s3://bucket/snapshots --verify[/]
    """
    try:
        found = list(_find(folder, verify=verify))
    except StreamsError:
        raise
    except Exception as error:  # noqa: BLE001 - file systems raise what they like
        why = f"{type(error).__name__}: {error}"
        raise StateError("the snapshots cannot be read", where=folder, why=why) from None
    if not found:
        note(f"No snapshots in {folder}.")
        return
    show_table(["application", "task", "taken", "offsets", "size", "state"], [row.cells for row in found])
    if not all(row.whole for row in found):
        raise typer.Exit(Exit.FAILED)


def _find(place: str, *, verify: bool) -> Iterator[_Found]:
    from pystreams.state.snapshots.folder import SnapshotFolder
    from pystreams.state.snapshots.manifest import task_folder
    from pystreams.state.snapshots.reading import find_manifests, read_manifest

    folder = SnapshotFolder(place)
    tasks = [
        (application, task) for application in folder.folders("") for task in folder.folders(application)
    ]
    for application, task in tasks:
        of_task = task_folder(application, task)
        for name in find_manifests(folder, of_task):
            try:
                manifest = read_manifest(folder, of_task, name)
            except (StateCorruptedError, FileNotFoundError) as error:
                yield _Found(
                    [application, task, _time(name.taken_ms), "", "", f"{error}".splitlines()[0]], False
                )
                continue
            damaged = _damaged(folder, of_task, manifest, verify=verify)
            offsets = ", ".join(
                f"{store} {content.offset}" for store, content in sorted(manifest.stores.items())
            )
            state = f"damaged: {', '.join(damaged)}" if damaged else "verified" if verify else "whole"
            cells = [
                application,
                task,
                _time(manifest.taken_ms),
                offsets,
                f"{manifest.size_bytes:,} bytes",
                state,
            ]
            yield _Found(cells, not damaged)


def _damaged(folder: SnapshotFolder, of_task: str, manifest: Manifest, *, verify: bool) -> list[str]:
    from pystreams.state.snapshots.reading import damaged_files, missing_files

    if not verify:
        return missing_files(folder, of_task, manifest)
    with tempfile.TemporaryDirectory() as scratch:
        return damaged_files(folder, of_task, manifest, Path(scratch) / "file")


def _time(taken_ms: int) -> str:
    return datetime.fromtimestamp(taken_ms / 1000).astimezone().isoformat(sep=" ", timespec="seconds")
