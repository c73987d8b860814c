"""Compares compose files and manifests with the schemas of Compose and Kubernetes: ``make check-containers``.

Their packages take 130 MB, so they are in an environment of their own, which has nothing of pystreams.
"""

from __future__ import annotations

import sys
from pathlib import Path

import kubernetes_validate
import yaml
from compose_spec import PyCompose

ROOT = Path(__file__).resolve().parents[2]
#: What ``pystreams init`` writes.
PROJECT = ROOT / "pystreams" / "cli" / "commands" / "project"
#: The oldest version that the manifests are for.
KUBERNETES = "1.31"
#: Kinds that Kubernetes learns from others: their schemas are not in the package.
OF_OTHERS = frozenset({"ScaledObject"})


def main() -> int:
    """Print what was found; the number of mistakes."""
    mistakes = 0
    for path in (ROOT / "docker" / "compose.yaml", PROJECT / "compose.yaml.template", *sys.argv[1:]):
        text = Path(path).read_text(encoding="utf-8").replace("{{name}}", "shop")
        services = PyCompose.from_yaml(text).service_names()
        print(f"{path}: {', '.join(services)}")
    for path in sorted((ROOT / "docker" / "kubernetes").glob("*.yaml")):
        for manifest in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            what = f"{path.name}: {manifest['kind']} {manifest['metadata']['name']}"
            if manifest["kind"] in OF_OTHERS:
                print(f"{what}: no schema here")
                continue
            try:
                kubernetes_validate.validate(manifest, KUBERNETES, strict=True)
                print(what)
            except kubernetes_validate.ValidationError as error:
                mistakes += 1
                print(f"{what}: {error.message}")
    return mistakes


if __name__ == "__main__":
    sys.exit(main())
