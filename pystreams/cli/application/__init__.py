"""The application that a command names on its command line.

- ``loading``: finds the ``App``, ``StreamsBuilder`` or ``Topology`` in a module or file. Begin here.
- ``settings``: its settings, overridden by flags and the environment. ``settings_in_force``: the same for
  ``--show-config``, with the origin of each.
- ``topics``: the topics that it reads and writes.
"""
