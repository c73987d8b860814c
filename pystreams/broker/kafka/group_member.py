"""A member of one of the two kinds of groups."""

from __future__ import annotations

from typing import TypeAlias

from pystreams.broker.kafka.member import KafkaMember
from pystreams.broker.kafka.streams_member import StreamsGroupMember

GroupMember: TypeAlias = KafkaMember | StreamsGroupMember
