"""Turns batches of the log into runs of records in the order of their timestamps.

``decoding`` reads the columns of a batch with serdes and timestamp extractor, ``input_decoding`` takes these from a
source. ``record_queue`` holds the buffered records of one partition. ``partition_group`` merges the queues of a task
by timestamp and gives *runs*: a run is the longest stretch of one batch that comes before the heads of all other
queues. ``turns`` does the same for queues that alternate record by record.
"""
