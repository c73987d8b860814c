"""Apache Kafka as a broker: confluent-kafka transfers the data, kafka-python handles the membership.

There are two clients, because neither can do both: see the decision "Kafka through two clients". Begin with ``broker``,
which opens the clients, and ``settings``, which configures both with the same settings under Java's names.

- Data: ``consumer``; ``producer`` (at least once) and ``exactly_once``, which send with ``sending``; ``transactions``
  (all or nothing, for hand-overs). ``refused_records`` remembers records that the broker refused. ``fencing`` ends the
  open transactions of members that are gone. ``hanging_transactions`` ends transactions that are over, but that brokers
  have left open in some partitions. Both use the requests of ``transaction_coordination``.
- Membership: threads use ``member``; ``coordinator`` drives kafka-python's protocol machine, ``coordination`` sends
  single requests, ``group_commit`` commits offsets for a group without members, ``any_broker`` asks several brokers,
  because one may be frozen, ``java_members`` waits for a Java member that has not left yet, ``known_topics`` checks the
  topics that a member reads.
- Membership in a group whose tasks the broker assigns (KIP-1071): threads use ``streams_member``;
  ``streams_heartbeat`` makes its requests and reads the answers, with the ``messages`` that kafka-python lacks;
  ``streams_group`` has requests of non-members. ``group_member`` is a member of either kind.
- ``group_description``: a group of either kind with its members' assignments, for observers.
- ``admin``: topics, offsets and groups of the cluster; ``admin_client`` is the client that all admins share;
  ``cluster_clock`` reads the time of the cluster.
- Errors as text for people: ``failures``, ``group_failures``, ``transaction_failures``, ``streams_failures``. Logs of
  the clients: ``client_logs``.
- Connections: ``tls``, ``oauth``, ``token_sources``, ``sockets``. ``statistics``: librdkafka's statistics as metrics.
"""

from __future__ import annotations

from pystreams.broker.kafka.broker import KafkaBroker

__all__ = ["KafkaBroker"]
