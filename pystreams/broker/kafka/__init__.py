"""Apache Kafka as a broker: confluent-kafka transfers the data, kafka-python handles the membership.

There are two clients, because neither can do both: see the decision "Kafka through two clients". Begin with ``broker``,
which opens the clients, and ``settings``, which gives both the same settings under Java's names.

- Data: ``consumer``; ``producer`` (at least once) and ``exactly_once``, which send with ``sending``; ``transactions``
  (all or nothing, for hand-overs). ``refused_records`` remembers records that the broker refused. ``fencing`` ends the
  open transactions of members that are gone, ``hanging_transactions`` what brokers have left open of those that are
  over, both with the requests of ``transaction_coordination``.
- Membership: ``member`` is what a thread uses; ``coordinator`` drives kafka-python's protocol machine,
  ``coordination`` sends single requests, ``group_commit`` commits offsets for a group without members,
  ``any_broker`` asks those that answer, because one may be frozen, ``java_members`` waits for a Java member that has
  not left yet, ``known_topics`` checks the topics that it reads.
- Membership in a group whose tasks the broker assigns (KIP-1071): ``streams_member`` is what a thread uses,
  ``streams_heartbeat`` makes its requests and reads the answers, in the ``messages`` that kafka-python lacks;
  ``streams_group`` is for those who are no members. ``group_member`` is a member of either kind.
- ``group_description``: a group of either kind, with what its members are assigned, for those who look at it.
- ``admin``: topics, offsets and groups of the cluster; ``admin_client`` is the client that all admins share;
  ``cluster_clock`` finds out what time it is there.
- Errors in words: ``failures``, ``group_failures``, ``transaction_failures``, ``streams_failures``. Logs of the
  clients: ``client_logs``.
- Connections: ``tls``, ``oauth``, ``token_sources``, ``sockets``. ``statistics``: what librdkafka reports of them, as
  metrics.
"""

from __future__ import annotations

from pystreams.broker.kafka.broker import KafkaBroker

__all__ = ["KafkaBroker"]
