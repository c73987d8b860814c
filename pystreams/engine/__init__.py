"""The engine turns records into results. It contains no code for threads or groups, so any host can drive it.

There are three hosts: ``runtime`` (live), ``testing`` (the test driver) and ``backfill`` (history).

Begin with ``stream_task``: a task of a sub-topology has queues of input records, compiled code that processes them, and
punctuators. ``new_task`` opens the stores of a task and creates the task; ``hosted_task`` holds both for a host.
``commit`` is the one function that commits. A record passes through these parts:

- ``input/``        decodes batches, queues them by partition, and chooses the next run of records by timestamp;
- ``codegen/``      compiles a sub-topology to Python; ``linking`` binds that code to one task's stores and serdes;
- ``processors/``   gives operators and users' processors access to their task: contexts, punctuation, wrappers;
- ``choosing_sink`` writes to sinks that choose the topic or partition of each record;
- ``failures/``     calls the handlers for every error, names the step and the record, counts the records left out.

``task_flow`` counts the records that a task reads and writes, by topic. ``traced_task`` is a task whose work is traced,
through the interface in ``tracing``.

``node_defaults`` finds the serdes of a source or sink, and the extractor of a source. ``operator_memory`` keeps the
numbers of steps from commit to commit, ``offset_metadata`` encodes the metadata that is committed beside the input
offsets, with ``dense_numbers`` if there is much; ``overflow_writer`` writes metadata that does not fit there to a
record, to which an ``overflow`` reference points.
``global_state`` is the one task that fills the global stores of a process. ``no_producer`` is the producer of tasks
that write nothing.
"""
