"""The reader of walked pages notices what does not fit, and reads commands as a person does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.shell import Shell, ShellError
from tests.docs.walk import fits, walk


@pytest.mark.parametrize(
    ("shown", "told"),
    [
        ("Wrote 1 record.\n", "Wrote 1 record.\n"),
        ("2026-11-22T13:27:47.950Z  ben  3.0\n", "2025-01-01T00:00:00.000Z\tben\t3.0\n"),
        ("done in 0.2 s\n", "done in 17.25 s\n"),
        (" a   b\n ──────\n 1   2\n", "\n a b\n ───\n 1 2\n\n"),
        ("first\n…\nlast\n", "first\nbetween\nbetween\nlast\n"),
        ("first\n…\nlast\n", "first\nlast\n"),
        ("digest …\n", "digest 7baf51\n"),
        ("from process 12\n", "from process 4711\n"),
    ],
)
def test_what_differs_from_run_to_run_counts_as_equal(shown: str, told: str) -> None:
    assert fits(shown, told)


@pytest.mark.parametrize(
    ("shown", "told"),
    [
        ("Wrote 1 record.\n", "Wrote 2 records.\n"),
        ("Wrote 1 record.\n", ""),
        ("", "Wrote 1 record.\n"),
        ("2026-11-22T13:27:47.950Z  ben  3.0\n", "2026-11-22T13:27:47.950Z  ben  4.0\n"),
        ("first\n…\nlast\n", "first\nlast\nmore\n"),
        ("a.c\n", "abc\n"),
    ],
)
def test_everything_else_is_noticed(shown: str, told: str) -> None:
    assert not fits(shown, told)


def page(folder: Path, text: str) -> Path:
    path = folder / "page.md"
    path.write_text(f"# Page\n\n{text}", encoding="utf-8")
    return path


def test_files_are_written_and_commands_share_one_shell(tmp_path: Path) -> None:
    text = """
```python
# code/hello.py
print("hello", input())
```
```console
$ name=you
$ echo $name |
>     python code/hello.py
hello you
$ sleep 60 &
$ kill -9 %1
$ wait
$ echo and goes on
and goes on
```
```bash
test $name = you   # a comment
# nothing but a comment
name=somebody; echo whatever
```
```console
$ echo $name
somebody
```
"""
    with Shell(tmp_path, {}) as shell:
        walk(page(tmp_path, text), tmp_path, shell)


def test_sections_may_be_chosen_and_commands_left_out(tmp_path: Path) -> None:
    text = "## Wrong\n```bash\nfalse\n```\n## Right\n```bash\nfalse\ntouch here\n```\n"
    with Shell(tmp_path, {}) as shell:
        walk(page(tmp_path, text), tmp_path, shell, headings=["Right"], leave_out=["false"])
    assert (tmp_path / "here").exists()


@pytest.mark.parametrize(
    "text",
    [
        "```console\n$ echo yes\nno\n```\n",
        "```console\n$ false\n```\n",
        "```bash\nfalse\n```\n",
        "```python\nprint(1)\n```\n```text\n2\n```\n",
        "```python\nprint(1)\n```\n",
        "```sh\necho nobody would run this\n```\n",
    ],
)
def test_a_page_that_is_wrong_fails(tmp_path: Path, text: str) -> None:
    with Shell(tmp_path, {}) as shell, pytest.raises(AssertionError, match=r"page\.md"):
        walk(page(tmp_path, text), tmp_path, shell)


def test_a_command_that_does_not_end_is_reported_with_what_it_said(tmp_path: Path) -> None:
    with Shell(tmp_path, {}) as shell, pytest.raises(ShellError, match="so far"):
        shell.run("echo so far; sleep 60", timeout_s=2)
