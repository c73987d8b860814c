"""The plan of an application: nodes, names, sub-topologies and partitions.

Begin with ``topology``: ``Topology``, into which the language writes, and which users of the Processor API write
themselves. ``nodes`` are its nodes as data, ``wiring`` checks how they hang together, ``arguments`` checks arguments.

- Building: ``graph`` is the language's own graph, which ``optimizer`` improves before it is written; ``wrapping`` puts
  a program's code around every step; ``subtopology`` cuts the plan into sub-topologies (``groups``) and gives names
  (``names``) and serdes (``deferred``) their final form; ``built`` is the result. ``partitions`` counts the tasks.
- Looking: ``describe`` writes Java's text (``java_collections`` has the order of Java's sets), ``picture/`` draws it.
- Comparing two programs: ``fingerprint`` describes a plan as data and digests it; ``difference`` compares two of them,
  with ``steps_before``, ``changed_schemas`` and ``former_names``.
"""
