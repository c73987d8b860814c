"""A log like Kafka's: topics, partitions, offsets, groups; behind one port, with two implementations.

Begin with ``port``: the protocols that a broker implements (consumer, producer, member of a group, admin), and the
promises that the rest of pystreams relies on.

- ``embedded/``: a log in one SQLite file, for the processes of one machine.
- ``kafka/``: Apache Kafka. The only package that imports Kafka clients, except those of schema registries (``serde``).
- ``group_application``: the description of an application for a broker that assigns the tasks itself.
- ``connecting``: opens the log that a configuration names. ``missing_log``: the error for readers of an embedded log
  that does not exist.

To add a broker, follow "Where to add what" in docs/ARCHITECTURE.md; the tests of the port are ``tests/broker``. This
package does not depend on stores or topologies, and uses only the ids of tasks (``Broker.fence``); keys and values are
bytes.
"""
