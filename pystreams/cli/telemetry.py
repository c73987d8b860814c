"""``run --otel``: metrics and traces go to an OpenTelemetry collector while the application runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pystreams.distribution import install_command
from pystreams.errors import ConfigError

if TYPE_CHECKING:
    from pystreams.runtime.streams import Streams


@contextmanager
def telemetry(streams: Streams, *, wanted: bool, worker: int | None = None) -> Iterator[None]:
    """Sends what runs inside. ``worker``: the number of this process, if it is one of several.

    Raises ``ConfigError`` without the extra ``otel``, and for variables that OpenTelemetry refuses."""
    if not wanted:
        yield
        return
    require_otel()
    from pystreams.telemetry import Telemetry

    with Telemetry(streams, worker=worker):
        yield


def require_otel() -> None:
    """Raises ``ConfigError`` without the extra ``otel``."""
    try:
        import pystreams.telemetry  # noqa: F401
    except ImportError as error:
        raise ConfigError(
            "--otel needs packages that are not installed", why=str(error), hint=install_command("otel")
        ) from None
