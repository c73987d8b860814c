"""A broker is the same log for whoever connects to it, in this process or in another one."""

from __future__ import annotations

import pickle
from contextlib import closing

from tests.broker.kit import P0
from tests.live.support import Log


def test_another_process_opens_the_same_log(log: Log):
    log.create("t")
    log.write("t", [("k", 1, 1)])
    opener = pickle.loads(pickle.dumps(log.broker.opener()))
    with closing(opener()) as again, closing(again.admin()) as admin:
        assert again.log_id == log.broker.log_id
        assert again.description == log.broker.description
        assert admin.end_offsets([P0]) == {P0: 1}
        assert admin.topic_id("t") == log.admin.topic_id("t")
