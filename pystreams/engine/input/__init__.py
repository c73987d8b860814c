"""Turns batches of the log into runs of records in the order of their timestamps.

Begin with ``partition_group``. It merges the queues of a task by timestamp and returns *runs*: a run is the longest
stretch of one batch that comes before the heads of all other queues. ``turns`` does the same for queues that alternate
record by record. ``record_queue`` holds the buffered records of one partition. ``decoding`` decodes the columns of a
batch with serdes and a timestamp extractor, ``input_decoding`` takes these from a source.
"""
