"""Writes the list of materials of a release: what the wheel needs with all its extras, as uv's lock has it.

python -m tests.package.materials FILE
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from pystreams.distribution import DISTRIBUTION, __version__
from tests.package.build_kit import ROOT

#: ``make package`` installs it into the environment of development.
UV = Path(sys.executable).with_name("uv")


def write_materials(path: Path) -> None:
    """Write them in the form of CycloneDX 1.5. Nothing is downloaded."""
    subprocess.run(
        [
            *(UV, "export", "--quiet", "--frozen", "--no-dev", "--all-extras"),
            *("--preview-features", "sbom-export", "--format", "cyclonedx1.5"),
            *("--output-file", path.absolute()),
        ],
        cwd=ROOT,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    materials = json.loads(path.read_text(encoding="utf-8"))
    # The lock does not have the version of the project, which the build takes from the code.
    materials["metadata"]["component"] |= {
        "version": __version__,
        "purl": f"pkg:pypi/{DISTRIBUTION}@{__version__}",
    }
    path.write_text(json.dumps(materials, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write_materials(Path(sys.argv[1]))
