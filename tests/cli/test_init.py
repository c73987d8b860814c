"""``pystreams init`` begins a project that passes its own checks, or says why not and touches nothing."""

from __future__ import annotations

import ast
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest

from pystreams.cli.commands import init
from pystreams.distribution import DISTRIBUTION, __version__
from tests.live.support import eventually
from tests.starting.forked import make_commands

CREATED = {
    ".dockerignore",
    ".gitignore",
    "Dockerfile",
    "Makefile",
    "README.md",
    "compose.yaml",
    "pyproject.toml",
    "shop/__init__.py",
    "shop/app.py",
    "shop/feed.py",
    "shop/models.py",
    "tests/test_app.py",
    "wheels/README.md",
}

#: Variables of these tests, and of the ``make`` that runs them.
OF_TESTS = ("PYTHON", "PYTEST", "MAKE", "MFLAGS", "ARGS")


@pytest.fixture(scope="module")
def mypy_cache(pytestconfig: pytest.Config) -> Path:
    """What mypy has found out about libraries: the same for each project, and most of its work."""
    return pytestconfig.cache.mkdir("mypy")  # type: ignore[union-attr]


@pytest.fixture
def shop(pystreams, folder: Path) -> Path:
    """A project that has just been made."""
    made = pystreams("init", "shop")
    assert made.code == 0, made.err
    return folder / "shop"


Within = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """How the owner's commands are started: with this environment's programs on the PATH. Those that need pystreams are
    forked from a process that has imported it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OF_TESTS)}
    commands = tmp_path_factory.mktemp("commands")
    path = os.pathsep.join([str(commands), str(Path(sys.executable).parent), kept["PATH"]])
    environment = {**kept, "PATH": path}
    return {"env": environment, "pass_fds": make_commands(commands, environment)}


@pytest.fixture
def within(programs: dict[str, Any]) -> Within:
    """Runs a command in a project as its owner does. ``answer`` is typed."""

    def run(project: Path, *command: str, answer: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=project, input=answer, capture_output=True, text=True, check=False, **programs
        )

    return run


@contextmanager
def in_the_background(project: Path, command: str, programs: dict[str, Any]) -> Iterator[None]:
    """A command of the README, with all the processes that it starts."""
    running = subprocess.Popen(["sh", "-c", command], cwd=project, start_new_session=True, **programs)
    try:
        yield
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()


def test_every_file_is_there_and_has_the_projects_name(shop):
    files = {str(path.relative_to(shop)): path.read_text() for path in shop.rglob("*") if path.is_file()}
    assert set(files) == CREATED
    assert [name for name, text in files.items() if "{{" in text or "}}" in text] == []
    assert f'dependencies = ["msgspec", "{DISTRIBUTION}[http]>={__version__}"]' in files["pyproject.toml"]


def test_its_own_tests_pass_and_what_they_leave_behind_is_not_for_git(shop, within):
    done = within(shop, "make", "test")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 passed" in done.stdout
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    within(shop, "git", "init", "--quiet")
    (shop / ".pystreams").mkdir()
    (shop / ".pystreams" / "log.db").touch()
    shown = within(shop, "git", "status", "--porcelain", "--untracked-files=all").stdout.splitlines()
    assert {line.split()[-1] for line in shown} == CREATED


def test_its_own_tests_notice_a_wrong_topology(shop, within):
    app = shop / "shop" / "app.py"
    app.write_text(app.read_text().replace("order.quantity * ", ""))
    done = within(shop, "make", "test")
    assert done.returncode != 0
    assert "test_orders_add_up_by_country" in done.stdout


@pytest.mark.parametrize(
    "check",
    [
        ("ruff", "check", "--no-cache", "."),
        ("ruff", "check", "--no-cache", "--isolated", "."),
        ("ruff", "format", "--no-cache", "--check", "."),
        ("mypy", "--cache-dir", "{cache}"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("name", ["shop", "a_name_as_long_as_they_come"])
def test_style_and_types_are_right(pystreams, folder, within, check, name, mypy_cache):
    pystreams("init", name)
    done = within(folder / name, sys.executable, "-m", *(one.format(cache=mypy_cache) for one in check))
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_is_next_is_said_and_true(pystreams, folder, within):
    told = pystreams("init", "shop")
    assert told.err == ""
    assert told.lines[0].startswith("Created the project shop")
    named = [line.split()[0] for line in told.lines if line.startswith("  shop/")]
    assert len(named) == 6
    assert [path for path in named if not (folder / path).is_file()] == []
    steps = [line.split("#")[0].strip() for line in told.lines if line.startswith(("  cd ", "  make "))]
    assert steps == ["cd shop", "make test", "make feed", "make run", "make results"]
    helped = within(folder / "shop", "make").stdout
    assert [step for step in steps[1:] if f"{step} " not in helped] == []


@pytest.mark.parametrize(("origin", "told"), [('{"url": "file:///shop.whl"}', True), (None, False)])
def test_where_no_index_has_pystreams_the_way_without_is_named(pystreams, monkeypatch, origin, told):
    installed = distribution(DISTRIBUTION)
    monkeypatch.setattr(installed, "read_text", {"direct_url.json": origin}.get)
    monkeypatch.setattr(init, "distribution", lambda name: {DISTRIBUTION: installed}[name])
    assert ("put its wheel into shop/wheels" in pystreams("init", "shop").out) == told


@pytest.mark.parametrize("there", [True, False])
def test_pytest_is_asked_for_where_it_is_missing(pystreams, monkeypatch, there):
    monkeypatch.setattr(init, "find_spec", lambda name: there or None)
    assert ("pip install pytest" in pystreams("init", "shop").out) != there


@pytest.mark.parametrize(
    ("name", "why", "hint"),
    [
        ("my-shop", "lowercase letters, digits and _", "pystreams init my_shop"),
        ("Shop", "lowercase letters, digits and _", "pystreams init shop"),
        ("2shops", "beginning with a letter", "pystreams init shops"),
        ("sub/shop", "lowercase letters, digits and _", "pystreams init shop"),
        ("class", "a keyword of Python", "pystreams init class_app"),
        ("json", "a module of Python's standard library", "pystreams init json_app"),
        ("pystreams", "the library itself has this name", "pystreams init pystreams_app"),
        ("tests", "the folder of the project's tests has this name", "pystreams init tests_app"),
    ],
)
def test_a_name_that_cannot_be_is_refused_with_one_that_can(pystreams, folder, name, why, hint):
    refused = pystreams("init", name)
    assert refused.code == 2
    assert why in refused.err
    assert hint in refused.err
    assert list(folder.iterdir()) == []


def test_a_folder_with_something_in_it_is_left_as_it_is(pystreams, folder):
    (folder / "shop").mkdir()
    (folder / "shop" / "mine.txt").write_text("mine")
    refused = pystreams("init", "shop")
    assert refused.code == 2
    assert "The folder shop is not empty" in refused.err
    assert "it holds mine.txt" in refused.err
    assert [path.name for path in (folder / "shop").iterdir()] == ["mine.txt"]


def test_a_file_of_that_name_is_left_as_it_is(pystreams, folder):
    (folder / "shop").write_text("mine")
    refused = pystreams("init", "shop")
    assert refused.code == 2
    assert "shop is a file" in refused.err


def test_an_empty_folder_is_filled(pystreams, folder):
    (folder / "shop").mkdir()
    assert pystreams("init", "shop").code == 0
    assert (folder / "shop" / "shop" / "app.py").exists()


def test_a_folder_that_cannot_be_written_is_reported_without_a_traceback(pystreams, folder, monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", "shop")

    monkeypatch.setattr(Path, "mkdir", refuse)
    refused = pystreams("init", "shop")
    assert refused.code == 2
    assert "The project cannot be written" in refused.err
    assert "Permission denied" in refused.err


def test_it_runs_on_every_python_that_pystreams_runs_on(shop):
    for file in shop.rglob("*.py"):
        ast.parse(file.read_text(), feature_version=(3, 11))


@pytest.mark.live
def test_the_samples_are_summed_to_the_last_cent(shop, within):
    for _ in range(2):  # a second feed comes with orders of the same hours
        for target in (["feed"], ["run", "ARGS=--until-caught-up"]):
            done = within(shop, "make", *target)
            assert done.returncode == 0, done.stdout + done.stderr
    sums = """
from pystreams import open_log
from shop.models import Customer, Order, RevenueOfHour
with open_log() as log:
    ordered = [r.value for r in log.consume("orders", key=str, value=Order)]
    told = {(r.key, r.value.hour): r.value for r in log.consume("revenue", key=str, value=RevenueOfHour)}
print(len(ordered), sum(revenue.orders for revenue in told.values()))
print(sum(o.quantity * o.unit_price_cents for o in ordered), sum(revenue.cents for revenue in told.values()))
print(*sorted({country for country, _ in told}))
"""
    done = within(shop, "python", "-c", sums)
    assert done.returncode == 0, done.stderr
    orders, cents, countries = done.stdout.splitlines()
    assert orders == "600 600"
    assert len(set(cents.split())) == 1
    assert set(countries.split()) - {"unknown"} == {"BE", "ES", "PT", "TR"}


@pytest.mark.live
def test_the_commands_of_its_readme_work(shop, within, programs):
    for target in (["feed"], ["run", "ARGS=--until-caught-up"]):
        assert within(shop, "make", *target).returncode == 0
    lines = (shop / "README.md").read_text().splitlines()
    commands = [line.partition("  #")[0].strip() for line in lines if line.startswith("pystreams ")]
    assert len(commands) == 7
    asked, others = commands[:3], commands[3:]
    assert {command.split()[1] for command in asked} == {"get", "scan", "threads"}
    serve = next(line for line in lines if "--http" in line).replace("8080", "0")
    with in_the_background(shop, serve, programs):
        for command in asked:
            # While it starts, it has nothing to say.
            eventually(lambda asked=command: within(shop, "sh", "-c", asked).returncode == 0, command)
        threads = within(shop, "sh", "-c", asked[2])
        assert "1_0" in threads.stdout
    for command in others:
        done = within(shop, "sh", "-c", command, answer="y\n")
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
