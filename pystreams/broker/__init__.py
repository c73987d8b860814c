"""A log in Kafka's shape: topics, partitions, offsets, groups; behind one port, with two implementations.

Begin with ``port``: the protocols that a broker implements (consumer, producer, member of a group, admin), and the
promises that the rest of pystreams relies on.

- ``embedded/``: a log in one SQLite file, for the processes of one machine.
- ``kafka/``: Apache Kafka. The only package that imports Kafka clients, except those of schema registries (``serde``).
- ``group_application``: what a broker that assigns the tasks itself has to know of an application.
- ``connecting``: opens the one that a configuration names. ``missing_log``: an embedded log that is only read must
  exist.

To add a broker, follow "Where to add what" in docs/ARCHITECTURE.md; the tests of the port are ``tests/broker``. Nothing
here knows stores or topologies, and of tasks only their ids (``Broker.fence``); keys and values are bytes.
"""
