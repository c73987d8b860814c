"""The application that a command names on its command line.

- ``loading``: finds the ``App``, ``StreamsBuilder`` or ``Topology`` in a module or file.
- ``settings``: its settings, with flags and the environment over them. ``settings_in_force``: the same for
  ``--show-config``, with where each comes from.
- ``topics``: the topics that it reads and writes.
"""
