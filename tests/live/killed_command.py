"""``python -m tests.live.killed_command before|after N COMMAND...`` runs a command of pystreams with small
transactions, in a process that kills itself at the Nth commit: before it is sent, when all records of the transaction
are in the log, or after it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from pystreams.broker.embedded.transactions import EmbeddedTransactionalProducer
from pystreams.broker.kafka.transactions import KafkaTransactionalProducer
from pystreams.cli.commands.dlq import writing
from pystreams.cli.main import main

Commit = Callable[..., None]


def killing(commit: Commit, when: str, number: int) -> Commit:
    left = number

    def commit_or_die(self: Any, *arguments: Any) -> None:
        nonlocal left
        left -= 1
        if left == 0 and when == "before":
            if isinstance(self, KafkaTransactionalProducer):
                assert self._client.flush(30) == 0
            os.kill(os.getpid(), signal.SIGKILL)
        commit(self, *arguments)
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return commit_or_die


if __name__ == "__main__":
    writing.TRANSACTION_RECORDS = 7
    for producer in (EmbeddedTransactionalProducer, KafkaTransactionalProducer):
        producer.commit = killing(producer.commit, sys.argv[1], int(sys.argv[2]))  # type: ignore[attr-defined, method-assign]
    main(sys.argv[3:])
