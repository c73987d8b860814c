"""The DSL: streams and tables.

Begin with ``builder``: topics become streams (``stream``) and tables (``table``, ``global_table``).

- Grouping and aggregating: ``grouped``, ``windowed``, ``session_windowed``, ``table_grouped``, ``cogroup``;
  ``windows`` and ``suppressed`` say when results are emitted; ``aggregates/`` has those of ``pystreams.agg``.
- Joins: ``stream_join_methods`` has the methods of streams, ``table_join_methods`` those of tables. ``stream_joins``
  (with ``join_windows``) builds joins of two streams, ``table_joins`` of two tables, ``foreign_key_joins`` of tables
  with different keys; ``table_grace`` lets a stream's records wait for their table. ``global_table`` builds joins with
  global tables.
- ``branches``, ``repartition``, ``processing``: splitting a stream, writing it under another key, processing it with
  classes of the user.
- ``expressions``: ``field("cents") > 9000`` in place of a function.
- Shared by all: ``context`` (the graph under construction), ``origins`` (how a table's rows are read), ``serdes`` and
  ``annotations`` (the types of a step), ``value_types`` (the fields of values), ``materialized`` (the store of a
  table), ``sources``, ``durations``, ``prefixes`` (generated names of aggregations).
- ``operators/``: the steps that all of them build.
- ``keywords``: misspelt keyword arguments of steps.

The keyword arguments replace Java's Consumed, Produced, Grouped, Materialized, Joined, Repartitioned and Named. Each
has the same meaning in all steps.

Types:

``key=``, ``value=``
    The type of the keys and values that the step returns: a type (``str``, ``int``, ``dict``, a dataclass, ...) or a
    ``Serde``. Needed only where records are written (topics, stores) and the type is not known from the steps before:
    keys keep their type until a step computes a new key, values until a function returns another type; ``count`` gives
    ``int``, ``reduce`` keeps the type, ``aggregate`` takes it from an initializer that is a type (``int``, ``dict``).

    If the type is not known, sources read bytes, and a function of text is assumed to return text. Anything else is a
    ``TopologyError`` when the topology is built for an application. The settings ``default_key_serde`` and
    ``default_value_serde`` replace these assumptions, unless they are bytes.

Names:

``step=``
    The step's own name, in ``describe()``, metrics and errors (Named, Consumed, Produced, Joined, StreamJoined). In a
    join it also names the repartition topic, in a split it is the prefix of the branches' names.
``name=``
    The name of the table's store. It makes the store queryable, is part of its changelog's name, and keeps the state
    when the program changes (Materialized.as). In ``repartition()``: of the topic. In a branch: the end of its name.
``repartition=``
    The name of the repartition topic of a grouping (Grouped.as). In ``group_by``, which computes a key, it is also
    the name of that step.

The store of a table (``table``, ``to_table``, ``count``, ``reduce``, ``aggregate``; ``filter``, ``filter_not`` and
``map_values`` of tables have one only with ``name=``):

``cached=True``            the record cache merges updates of a key before they are forwarded
``logged=True``            changes are written to a changelog topic, from which a lost store is restored
``persistent=True``        on disk (RocksDB); False: in memory
``history=``               a table keeps versions of its rows for this time: a late update becomes an older version, and
                           streams are joined with the version of their time (needs a ``name``; ``history_segment=``:
                           how much of the history expires at once)
``max_entries=``           a table in memory keeps this many rows of each partition, the most recently used ones
``retention=``             how long windows and sessions are kept: at least as long as they accept records, which is the
                           default (sliding windows: twice the time difference, and grace)
``changelog_config=``      topic settings of the changelog, by Kafka's names

As in Java, any of these without ``name=`` uses up one more number of the counter for generated names (for ``count`` and
for ``filter`` and ``map_values`` of tables), so that both generate the same names for the same program.

Joins of two streams (StreamJoined): ``windows=`` is the largest difference of two records' times, as ``JoinWindows``.
The join has a store for the records of each side and one for unmatched records. They take ``logged=``,
``persistent=``, ``changelog_config=``, and ``name=`` as the prefix of their names; they are never cached.

Topics:

``timestamp_extractor=``   the source of a record's time: a name of ``pystreams.timestamps``, or a function
``auto_offset_reset=``     where to start without a committed offset: "earliest", "latest", "none", or
                           "by_duration:PT1H" or a timedelta (this long before now)
``partitioner=``           a function of (topic, key, value, partitions) that returns a partition; several (the record
                           goes to each); an empty collection (it is dropped); or None (the key decides)
``partitions=``            the partition count of a repartition topic

Joins with rows of another key:

``foreign_key=``           of two tables: a function of the value, or key and value, that returns the key of a row of
                           the other table; ``partitioner=`` and ``other_partitioner=`` are those of the tables' topics
``key_fn=``                of a stream with a global table: a function that returns the key of a row

Processors: ``stores=`` names the stores that a ``Processor`` may use.

Durations are timedeltas or milliseconds.
"""

from __future__ import annotations

# The classes of the language return each other. Wherever an import of them begins, they come in this order.
from pystreams.dsl import stream as stream
