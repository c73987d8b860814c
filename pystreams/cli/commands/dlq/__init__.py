"""``pystreams dlq``: looks at the records of a dead-letter topic, and writes them back to the topics they came from.

- ``command`` has the three commands: list, show, replay. Begin here.
- ``letters`` reads a record of the topic as a dead letter, ``selection`` finds those that the options choose.
- ``listing`` and ``showing`` print them, ``decoding`` reads keys and values as the application does.
- ``plan`` decides what a replay writes where, ``writing`` writes it, each record once: ``marks`` remembers them, in
  an ``identity_set``. ``growth`` notices topics that have got more partitions since.
"""
