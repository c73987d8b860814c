"""The threads of a client.

Begin with ``stream_thread``, the only loop: membership, restore, poll, process, punctuate, commit. ``trouble`` decides
how long it retries. ``thread_calls`` carries questions of other threads to it, ``progress`` is what they may see of it
at any time. ``global_thread`` keeps the global stores up to date.
"""
