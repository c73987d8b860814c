"""A real Prometheus on this machine, which scrapes applications while a test runs."""

from __future__ import annotations

import json
import re
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Self

from tests.live.support import eventually

JOB: Final = "watched"
#: For Grafana's ``$__rate_interval``: longer than any scrapes are apart on a busy machine.
_RATE_INTERVAL: Final = "30s"
#: Shorter than scrapes are apart, so that no value is passed over.
_STEP_S: Final = 0.25
_STOP_TIMEOUT_S: Final = 30.0


class Prometheus:
    """Scrapes these addresses every second from ``with`` to its end, also while nobody listens there."""

    def __init__(self, program: str, folder: Path, addresses: Sequence[str]) -> None:
        scrapes = [{"job_name": JOB, "static_configs": [{"targets": list(addresses)}]}]
        configuration = folder / "prometheus.yaml"  # JSON is YAML, too.
        text = json.dumps({"global": {"scrape_interval": "1s"}, "scrape_configs": scrapes})
        configuration.write_text(text, encoding="utf-8")
        self._command = [
            program,
            f"--config.file={configuration}",
            f"--storage.tsdb.path={folder / 'series'}",
            "--web.listen-address=127.0.0.1:0",
        ]
        self._log = folder / "prometheus.log"
        self._began_s = time.time()

    def __enter__(self) -> Self:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            self._address = eventually(self._listening, self._log)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def ask(self, query: str) -> list[dict[str, Any]]:
        """The series of a query since Prometheus has begun. Raises ``HTTPError`` if it cannot be answered."""
        text = query.replace("$job", JOB).replace("$__rate_interval", _RATE_INTERVAL)
        asked = {"query": text, "start": self._began_s, "end": time.time(), "step": _STEP_S}
        series: list[dict[str, Any]] = self._get(f"query_range?{urllib.parse.urlencode(asked)}")["result"]
        return series

    def scrape_twice(self, address: object) -> None:
        """Wait until an address has answered two scrapes more: a rate needs two values."""
        wanted = self._answered(address) + 2
        eventually(lambda: self._answered(address) >= wanted, f"scrapes of {address}")

    def _answered(self, address: object) -> float:
        asked = {"query": f'sum_over_time(up{{instance="{address}"}}[1h])'}
        series = self._get(f"query?{urllib.parse.urlencode(asked)}")["result"]
        return float(series[0]["value"][1]) if series else 0

    def _get(self, path: str) -> Any:
        with urllib.request.urlopen(f"http://{self._address}/api/v1/{path}", timeout=60) as answer:
            return json.load(answer)["data"]

    def _listening(self) -> str | None:
        """The address where it answers, as soon as its log names it."""
        log = self._log.read_text(encoding="utf-8")
        assert self._process.poll() is None, log
        found = re.search(r'msg="Listening on".*?address=(\S+)\n', log)
        return found[1] if found else None

    def _stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
