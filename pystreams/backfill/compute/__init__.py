"""The computation of a backfill.

From the whole to the single record:

- ``driver``: begins or resumes a backfill and computes slice after slice. Begin here. ``incremental``
  continues an earlier one.
- ``opening``: the sources that the user names, each as what an executor can read. ``staged_tables``: the records of
  tables that are read without Spark, sorted for the tasks of a slice.
- ``executor``: runs the tasks of a slice: ``inline`` in this process, ``workers.processes`` in several of them,
  ``spark.executor`` on Spark.
- ``task``: the task function: one task of a slice, with the engine and the stores of the live application.
- ``slice_nodes``: the steps of a sub-topology as its slice runs them. ``partial_rows``: what is written to a
  repartition topic that gets partial aggregates.
- ``external_input``, ``feeding``: records on their way to the task, in their order. ``column_input``: their columns,
  for a step that folds in columns; ``column_steps``: steps of expressions before it. ``producer``: the records that
  it sends, which become rows (``spill``: those that memory does not hold).
- ``shares``: a task that is cut by key or by record, because it has most of the records; ``joining``: the results of
  its shares.
- ``global_tables``: global stores, filled once on each machine. ``stored_entries``: the content of stores at the end.
- ``backfill_result``: stores, sinks and offsets of a computed backfill, for those that take them elsewhere;
  ``result_tables``: stores and sinks as tables. ``summary``: the result for people.

Nothing here writes to a log.
"""
