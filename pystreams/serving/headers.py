"""The header that names the application, for the server and for commands, which do without web libraries."""

from __future__ import annotations

from typing import Final

#: In each answer: the application's id.
APPLICATION_HEADER: Final = "Pystreams-Application"
