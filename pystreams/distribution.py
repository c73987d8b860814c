"""The name under which pystreams is installed, and its version."""

from __future__ import annotations

from typing import Final

#: The distribution's name on PyPI, where ``pystreams`` is another project. The package is imported as ``pystreams``.
DISTRIBUTION: Final = "pystreams-engine"

#: The version. Builds and ``pystreams.__version__`` take it from here.
__version__ = "0.1.0"


def install_command(extra: str) -> str:
    """The shell command that installs one of the extras of pyproject.toml; another one for those who have a clone,
    because there may be no release yet."""
    return (
        f"pip install '{DISTRIBUTION}[{extra}]', or from a clone: pip install '/path/to/the/clone[{extra}]'"
    )
