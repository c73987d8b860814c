"""The language of streams and tables.

Begin with ``builder``: topics become streams (``stream``) and tables (``table``, ``global_table``).

- Grouping and aggregating: ``grouped``, ``windowed``, ``session_windowed``, ``table_grouped``, ``cogroup``;
  ``windows`` and ``suppressed`` say when results are emitted.
- Joins: ``joins`` and ``stream_joins`` of streams (``join_windows``, ``table_grace``), ``joined_tables``,
  ``table_joins`` and ``foreign_key_joins`` of tables.
- ``branches``, ``repartition``, ``processing``: streams that are divided, written under another key, processed by
  classes of the user.
- Shared by all: ``context`` (the graph in the making), ``origins`` (how a table's rows are read), ``serdes`` and
  ``annotations`` (which types a step has), ``materialized`` (the store of a table), ``sources``, ``durations``,
  ``prefixes`` (generated names).
- ``operators/``: the steps that all of them build.

The vocabulary of keyword arguments: what Java puts into Consumed, Produced, Grouped, Materialized, Joined,
Repartitioned and Named. Each word means the same wherever it stands.

What comes out of a step:

``key=``, ``value=``
    The type of the keys and values behind the step, as a type (``str``, ``int``, ``dict``, a dataclass, ...) or a
    ``Serde``. Needed only where records are written (topics, stores) and no type flows in from above: keys keep their
    type until a step computes a new one, values until a function returns something else; ``count`` gives ``int``,
    ``reduce`` keeps the type, ``aggregate`` takes it from an initializer that is a type (``int``, ``dict``).

    Where no type is known: sources read bytes; what a function makes of text is taken for text; all else is a
    ``TopologyError`` when the topology is built for an application, unless ``default_key_serde`` and
    ``default_value_serde`` are configured (to something else than bytes), which come before the guess.

Names:

``step=``
    The step's own name, in ``describe()``, metrics and errors (Named, Consumed, Produced, Joined, StreamJoined). A
    join's is also that of its repartition topic, a split's the prefix of its branches.
``name=``
    The name of the table's store, which makes it queryable, names its changelog, and keeps its state when the program
    changes (Materialized.as). For ``repartition()``: of the topic. For a branch: the end of its name.
``repartition=``
    The name of the repartition topic of a grouping (Grouped.as). ``group_by`` computes a key, and this names that
    step, too.

The store of a table (``table``, ``to_table``, ``count``, ``reduce``, ``aggregate``; tables' ``filter``, ``filter_not``
and ``map_values`` have one only if they have a ``name=``):

``cached=True``            updates of one key are merged in the record cache before they go on
``logged=True``            changes are kept in a changelog topic, from which a lost store is restored
``persistent=True``        on disk (RocksDB), or in memory
``history=``               a table keeps versions of its rows for so long: late updates are older versions, streams are
                           joined with the row of their time (needs a ``name``; ``history_segment=``: how much of it
                           expires at once)
``max_entries=``           a table in memory keeps so many rows of each partition, those used last
``retention=``             how long windows and sessions are kept: at least as long as they take records, which is the
                           default (sliding windows: twice the time difference, and grace)
``changelog_config=``      topic settings of the changelog, by Kafka's names

As in Java, giving any of these without ``name=`` draws one more number from the counter behind generated names (for
``count`` and the tables' ``filter`` and ``map_values``), so that both generate the same names for the same program.

Joins of two streams (StreamJoined): ``windows=`` says how far apart in time two records may be, as ``JoinWindows``.
Their stores, one for the records of each side and one for those that wait for a match, take ``logged=``,
``persistent=``, ``changelog_config=`` and ``name=``, with which their names begin; they are never cached.

Topics:

``timestamp_extractor=``   which time a record has: a name of ``pystreams.timestamps``, or a function
``auto_offset_reset=``     where to begin without a committed offset: "earliest", "latest", "none",
                           "by_duration:PT1H" or a timedelta (so long ago)
``partitioner=``           a function of (topic, key, value, partitions) that gives the partition; or several, and the
                           record goes to each; or an empty collection, and it is dropped; or None: the key decides
``partitions=``            how many partitions a repartition topic gets

Joins with other rows than those of one's own key:

``foreign_key=``           of two tables: a function of the value, or key and value, that names a row of the other;
                           ``partitioner=`` and ``other_partitioner=`` are then those of the two tables' topics
``key_fn=``                of a stream with a global table: a function that names its row

Processors: ``stores=`` names the stores that a ``Processor`` may use.

Durations are timedeltas or milliseconds.
"""
