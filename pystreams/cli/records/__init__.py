"""Records as text, for ``produce`` and ``consume``.

- ``format``: a format reads text and shows bytes. Begin here. ``known_formats``: those that ``--key-type`` and
  ``--value-type`` name. ``schema_formats``: those whose schemas are in a registry.
- ``json_records``: reads and writes whole records as lines of JSON.
- ``input_lines``: the lines of a file or of standard input. ``input_records``: text, JSON or CSV in them as records.
  ``reading_progress``: how far a long input has been read.
"""
