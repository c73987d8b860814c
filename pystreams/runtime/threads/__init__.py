"""The threads of a client.

Begin with ``rounds``, the work of a stream thread: membership, restore, poll, process, punctuate, commit, and the
handling of errors. ``stream_thread`` is the thread that runs the rounds, from
its start to its end (``thread_state``, ``thread_end``). ``requests`` holds the requests of other threads to it,
``thread_calls`` the functions that it calls on their behalf. ``progress`` and ``activity`` show other threads its state
at any time. ``thread_metrics`` measures the rounds, ``progress_metrics`` computes metrics from the progress.
``thread_summary`` periodically logs a summary of the thread's work. ``follow_up`` decides when the thread asks for the
next rebalance. ``global_thread`` keeps the global stores up to date.
"""
