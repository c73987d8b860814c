"""``python -m pystreams``: the command line."""

from __future__ import annotations

from pystreams.cli.main import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
