"""The engine: turns records into results. It knows neither threads nor groups, and any host can drive it.

Three hosts do: ``runtime`` (live), ``testing`` (the test driver) and ``backfill`` (history).

Begin with ``stream_task``: a task of a sub-topology, with queues in front, compiled code behind and punctuators
beside. ``new_task`` opens the stores of a task and puts the task around them; ``hosted_task`` is both together, as a
host holds them. ``commit`` is the one function that commits. On the way of a record:

- ``input/``        decodes batches, queues them by partition, and chooses the next run of records by timestamp;
- ``codegen/``      compiles a sub-topology to Python; ``linking`` binds that code to one task's stores and serdes;
- ``processors/``   is what operators and users' processors see: contexts, punctuation, wrappers;
- ``choosing_sink`` writes to sinks that look at each record to choose its topic or partition;
- ``failures/``     asks the handlers about every error, names the step and the record, counts what was left out.

``node_serdes`` finds the serdes of a source or sink, ``offset_metadata`` encodes what is committed beside the input
offsets. ``global_state`` is the one task that fills the global stores of a process. ``no_producer`` is the producer of
tasks that write nothing.
"""
