"""The name under which pystreams is installed, and its version."""

from __future__ import annotations

from typing import Final

#: The distribution's name on PyPI, where ``pystreams`` is another project. The package is imported as ``pystreams``.
DISTRIBUTION: Final = "pystreams-engine"

#: The one place where the version stands: builds and ``pystreams.__version__`` take it from here.
__version__ = "0.1.0"


def install_command(extra: str) -> str:
    """What to type at a shell to install one of the extras of pyproject.toml."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"
