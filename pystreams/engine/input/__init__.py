"""From batches of the log to runs of records in the order of time.

``decoding`` reads the columns of a batch with serdes and timestamp extractor, ``input_decoding`` as a source says.
``record_queue`` holds what waits of one partition. ``partition_group`` merges the queues of a task by timestamp and
gives *runs*, the longest stretch of one batch that comes before the heads of the others; ``turns`` is the form for
queues that alternate record by record.
"""
