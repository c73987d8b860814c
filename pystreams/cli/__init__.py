"""The command line: ``pystreams COMMAND``.

Begin with ``main``, which registers the commands and turns an error into a message and an exit code.

- ``commands/``: one module for each command, a package for those that need several, and for the workers of ``run``.
- ``application/``: the application that a command names: loading it, its settings, its topics.
- ``records/``: records as text, in both directions, for ``produce`` and ``consume``.
- ``terminal/``: messages, tables, logs, progress, errors and exit codes.
- ``options``: options that several commands share. ``connection``: the log that a command works on.
  ``application_client``: asks a running application, for ``get``, ``scan``, ``status`` and ``threads``; ``https``: its
  certificates. ``masters``: where history is computed; ``spark``: Spark for those that use it.
  ``watching``: what ``run`` shows to those that watch over it. ``profiling``: what ``run --profile`` shows.
  ``telemetry``: what ``run --otel`` sends. ``stacks``: where the threads of an application are, when somebody asks.
  ``garbage``: what garbage collections leave out. ``versions``: the lines of ``--version``. ``negative_numbers``:
  arguments that look like options.

Modules that commands import at their beginning are light: everything else is imported when a command runs, so that
``--help`` is quick and works without the optional packages. Nothing outside of this package imports it.
"""
