"""The operators of the language: the steps that a topology's nodes run.

Begin with ``base``: the interface between an operator and compiled code. Steps without state (``stateless``) are data;
``engine.codegen`` inlines them. The others are objects:

- Aggregations: ``aggregate``, ``window_aggregate``, ``session_aggregate``, ``sliding_aggregate``, and
  ``table_aggregate`` for regrouped tables. ``folding`` makes counts and reductions of them, ``in_place`` and
  ``forgotten`` look after aggregators that change their argument; ``record_time`` gives declared aggregates the time of
  records; ``window_close`` emits a window once, at its end.
  ``final_results`` and ``final_windows`` run them over history, where only the last result of a key is observed,
  ``final_columns`` does so in columns (``in_columns`` chooses it, ``state_columns`` has the states, ``column_looks``
  decides when there are too many).
  ``combining`` has the steps on both sides of a repartition topic that gets partial aggregates, ``partial_results``
  what these are and how they are merged; ``partial_columns`` makes them, ``partial_windows`` does both by window.
  ``through_topic`` has values on their way through the topic.
- Tables: ``table``, ``transform_values``, ``suppress``, ``pass_through``. ``changes`` decides when a change is
  forwarded, ``value_getter`` reads the current value of a table that may have no store.
- Joins: ``stream_table_join``, ``stream_join`` (two streams), ``table_join``, ``foreign_key_join``,
  ``global_table_join``. ``partners`` counts what finds nothing.
- ``process``: steps that users write as classes.

To add a join or another operator, follow "Where to add what" in docs/ARCHITECTURE.md. Its functions are
``UserFunction`` fields with the names that others have (``joiner``, ``mapper``): messages about errors find them by
these names (``engine.failures.origins``).
"""
