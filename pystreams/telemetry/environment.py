"""OpenTelemetry's own variables that its SDK for Python does not handle by itself.

Source: https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/.
"""

from __future__ import annotations

import os
from typing import Final, Literal

from opentelemetry.sdk.environment_variables import OTEL_TRACES_SAMPLER
from opentelemetry.sdk.resources import SERVICE_INSTANCE_ID, SERVICE_NAME, OTELResourceDetector, Resource
from opentelemetry.sdk.trace.sampling import ParentBased, Sampler, TraceIdRatioBased

from pystreams.errors import ConfigError

#: The share of a task's rounds that are sampled if their input has no trace and ``OTEL_TRACES_SAMPLER`` is not set: a
#: busy thread makes up to 40 rounds a second.
DEFAULT_RATIO: Final = 0.05

_PROTOCOL: Final = "http/protobuf"

Signal = Literal["metrics", "traces"]


def sends(signal: Signal) -> bool:
    """Whether to send metrics or traces: yes, unless they are switched off (``OTEL_TRACES_EXPORTER=none``).

    Raises ``ConfigError`` for exporters and protocols that are not available.
    """
    exporter = f"OTEL_{signal.upper()}_EXPORTER"
    chosen = os.environ.get(exporter) or "otlp"
    if chosen not in ("otlp", "none"):
        raise ConfigError(
            f"{exporter} is {chosen!r}",
            where=exporter,
            why="metrics and traces are sent over OTLP, or not at all",
            hint="set it to otlp or none, or leave it out",
        )
    for variable in (f"OTEL_EXPORTER_OTLP_{signal.upper()}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        protocol = os.environ.get(variable)
        if protocol:
            _check_protocol(variable, protocol)
            break
    return chosen == "otlp"


def _check_protocol(variable: str, protocol: str) -> None:
    if protocol != _PROTOCOL:
        raise ConfigError(
            f"{variable} is {protocol!r}",
            where=variable,
            why=f"OTLP is sent as {_PROTOCOL} only",
            hint=f"set it to {_PROTOCOL} or leave it out; collectors listen for it on port 4318",
        )


def resource_of(application_id: str, worker: int | None) -> Resource:
    """The resource of this process, which describes the origin of all metrics and spans.

    ``OTEL_SERVICE_NAME`` and ``OTEL_RESOURCE_ATTRIBUTES`` take precedence; otherwise the service has the application's
    name, and the instance a random id, as OpenTelemetry recommends. Workers share an environment, so the number of the
    worker is added to a given id.
    """
    given = OTELResourceDetector().detect().attributes
    own = {SERVICE_NAME: str(given.get(SERVICE_NAME, application_id))}
    if worker is not None and SERVICE_INSTANCE_ID in given:
        own[SERVICE_INSTANCE_ID] = f"{given[SERVICE_INSTANCE_ID]!s}-{worker}"
    return Resource.create(own)


def sampler() -> Sampler | None:
    """Chooses the rounds that are traced; None: ``OTEL_TRACES_SAMPLER`` decides."""
    if os.environ.get(OTEL_TRACES_SAMPLER):
        return None
    return ParentBased(TraceIdRatioBased(DEFAULT_RATIO))
