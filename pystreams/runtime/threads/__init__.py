"""The threads of a client.

Begin with ``rounds``, the work of a stream thread: membership, restore, poll, process, punctuate, commit, and the
answers to errors; ``trouble`` decides how long it retries. ``stream_thread`` is the thread that goes the rounds, from
its start to its end (``thread_state``, ``thread_end``). ``requests`` holds what other threads want of it,
``thread_calls`` their questions, ``progress`` and ``activity`` what they may see of it at any time. ``thread_metrics``
measures the rounds, ``progress_metrics`` has the metrics that follow from the progress. ``thread_summary`` logs now and
then what the thread did. ``follow_up`` says when it asks for the next rebalance. ``global_thread`` keeps the global
stores up to date.
"""
