"""The columns of keys and values: which type each has, and how bytes become it. Nothing here imports Spark.

- ``store_columns`` and ``record_columns``: the columns of a store and of records of a topic. Begin with these two.
- ``parts``: a key or a value as a column, by the serde of an application or by a type's name. ``of_serde``: the column
  for a serde.
- ``python_types``, ``avro_types``, ``protobuf_types``: from the schema of serialized values to Arrow's types, and from
  values to what fits them; ``typed`` is what they share. ``named_types``: numbers and text without an object for each.
- ``key_spans``: the window or session in a key. ``compacted``: the last value of each key.
"""
