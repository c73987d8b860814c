"""The topology of an application: nodes, names, sub-topologies and partitions.

Begin with ``topology``: the DSL and the low-level API both build a ``Topology``. ``nodes`` are its nodes as data,
``wiring`` holds and checks their connections, ``arguments`` checks arguments.

- Building: ``graph`` is the DSL's own graph, which ``optimizer`` rewrites before it becomes a topology; ``wrapping``
  wraps every step in a program's code; ``subtopology`` makes sub-topologies (``groups``) with final names (``names``)
  and serdes (``deferred``, and ``missing_types`` for those that a program leaves open); ``built`` is the result.
  ``partitions`` determines partition counts and tasks.
- Showing: ``describe`` writes Java's text (``java_collections`` has the order of Java's sets), ``picture/`` draws it.
- Checking: ``circles`` finds topics through which an application reads what it has written itself.
- Comparing two programs: ``fingerprint`` describes a topology as data and digests it; ``difference`` compares two,
  with ``steps_before``, ``changed_schemas``, ``former_names`` and ``declared_rows``.
"""
