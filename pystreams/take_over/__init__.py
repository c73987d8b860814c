"""Decides whether a program can continue from the state that another program, or a backfill, has left.

Begin with ``last_run``, the record of the topology that processed records last, and of the schemas of its stored data.
``take_over_plan`` compares it with the topology that is about to start: ``losses`` finds the stores and topics that
would lose content (``unprocessed`` counts the unprocessed records of a topic), ``ways_on`` is advice for users about
that. ``hand_over_record`` is the record in which a backfill notes whether its hand-over is complete. This package does
not change topics: ``runtime.startup`` does.
"""
