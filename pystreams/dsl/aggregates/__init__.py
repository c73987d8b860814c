"""Declared aggregates: what ``pystreams.agg`` returns, bound to the values of a stream.

Begin with ``aggregate``: the interface of one aggregate.

- ``numbers``, ``ordered``, ``timed``, ``distinct``: its kinds; ``hyperloglog`` is the sketch of the last.
- ``selectors`` choose of each value what is aggregated.
- ``rows`` puts several aggregates into one row, and has the serdes of rows; ``given_model`` checks a model that the
  user gives. ``declaring`` makes rows of the arguments of a step.

``dsl.operators.state_columns`` has the same states as arrays, for backfills. To add an aggregate, follow "Where to add
what" in docs/ARCHITECTURE.md.
"""
