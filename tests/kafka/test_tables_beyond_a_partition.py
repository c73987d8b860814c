"""Global tables and foreign-key joins do on Kafka what they do on the embedded log."""

# ruff: noqa: F401 - the tests of these modules are the tests of this one
from __future__ import annotations

import pytest

from tests.kafka.support import Cluster
from tests.live.test_foreign_key_joins import (
    test_answers_go_to_the_partition_that_asked,
    test_partitioners_find_rows_of_topics_with_partitions_of_their_own,
    test_rows_end_as_both_tables_say,
)
from tests.live.test_global_tables import (
    test_a_row_that_cannot_be_read_later_stops_the_client,
    test_a_row_that_cannot_be_read_stops_the_start,
    test_a_topic_that_has_lost_records_that_were_not_read_is_read_anew,
    test_clients_that_share_a_state_directory_have_tables_of_their_own,
    test_it_is_kept_up_to_date_while_the_application_runs,
    test_what_changed_while_the_application_was_down_is_read_before_it_goes_on,
)


@pytest.fixture
def log(cluster: Cluster) -> Cluster:
    return cluster
