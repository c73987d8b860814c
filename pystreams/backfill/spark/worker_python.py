"""The Python of Spark's workers on this machine: Spark takes it from the environment, else it is any ``python3``."""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Final

from pystreams.backfill.spark.failures import other_python

_TIMEOUT_S: Final = 20
_VERSION: Final = "{}.{}".format(*sys.version_info)
_TELL: Final = (
    "import sys, importlib.util as u; "
    "print('{}.{}'.format(*sys.version_info), '' if u.find_spec('pystreams') else 'alone')"
)


def check_python(worker: str) -> None:
    """Raises ``AppLoadError`` for a Python of workers (its name or path) that lacks pystreams, or has another version
    than this one."""
    found = shutil.which(worker)
    # The interpreters of environments are links to one file, so links are not followed.
    if found is not None and Path(found).absolute().parent == Path(sys.executable).absolute().parent:
        return
    why = "there is no such program" if found is None else _difference(found)
    if why:
        raise other_python(found or worker, why)


@cache
def _difference(python: str) -> str:
    """Why workers cannot run this Python; empty: they can, or it does not say."""
    try:
        told = subprocess.run(  # noqa: S603 - the Python of the workers
            [python, "-c", _TELL], capture_output=True, text=True, timeout=_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    version, *alone = told.stdout.split() or [_VERSION]
    if alone:
        return f"the Python that they run has no module pystreams; this program runs {sys.executable}"
    if version != _VERSION:
        return f"they run Python {version}, and this program runs Python {_VERSION}, {sys.executable}"
    return ""
