"""The trial of a changed program, in a process of its own: it is loaded, and compared with what the log has stored, as
at a start. ``run --reload`` stops the running application only after that.

The last line of standard output is JSON. An error is on standard error; the exit code is that of an error of loading.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pystreams.cli.terminal.exits import Exit, exit_of
from pystreams.cli.terminal.show_error import show_error
from pystreams.errors import ConfigError, StreamsError, TopologyError

_MODULE: Final = "pystreams.cli.commands.reload_trial"


class Trial:
    """The result of a trial. ``description`` is that of ``describe --format json``; None: the program cannot be loaded.
    ``refused``: its start would be refused, because content would be lost. ``said``: the error."""

    def __init__(self, application: str, setting: Sequence[str], flags: Mapping[str, Any]) -> None:
        given = json.dumps([application, list(setting), dict(flags)])
        # In a session of its own: Ctrl-C is for the application.
        tried = subprocess.run(  # noqa: S603 - this program
            [sys.executable, "-m", _MODULE, given],
            capture_output=True,
            text=True,
            check=False,
            start_new_session=True,
        )
        self.said = tried.stderr.rstrip()
        self.description: Any = None
        self.refused = False
        if tried.returncode == Exit.OK:
            # Before it is what the program itself prints.
            found = json.loads(tried.stdout.splitlines()[-1])
            self.description, self.refused = found["description"], found["refused"]


def main(given: str) -> int:
    """The trial itself; ``given`` as ``Trial`` writes it. Returns the exit code."""
    from pystreams.cli.application.loading import load_application
    from pystreams.cli.application.settings import settings_of
    from pystreams.cli.commands.describe import describe_json

    application, setting, flags = json.loads(given)
    try:
        app = load_application(application)
        config = settings_of(app, setting, **flags)
        description = json.loads(describe_json(app, setting))
    except StreamsError as error:
        show_error(error)
        return exit_of(error)
    refusal = _refusal(app, config)
    if refusal is not None:
        show_error(refusal)
    print("\n" + json.dumps({"description": description, "refused": refusal is not None}))
    return Exit.OK


def _refusal(app: Any, config: Any) -> StreamsError | None:
    """The error with which a start would be refused, because of what the log has stored. None also if the log cannot be
    asked now: the start says so."""
    from pystreams.cli.connection import open_admin, open_broker_of
    from pystreams.clock import SystemClock
    from pystreams.dsl.builder import build_topology
    from pystreams.runtime.startup.client_take_over import ClientTakeOver
    from pystreams.state.disk.directory import StateDirectory

    built = build_topology(app, config)
    directory = StateDirectory(config.state_dir, config.application_id)
    try:
        with open_broker_of(config) as broker, open_admin(broker) as admin:
            ClientTakeOver(built, config, broker, admin, directory, SystemClock()).check()
    except (TopologyError, ConfigError) as error:
        return error
    except StreamsError:
        return None
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
