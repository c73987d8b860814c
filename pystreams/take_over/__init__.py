"""Decides whether a program can go on from the state that another program, or a backfill, has left.

Begin with ``last_run``, the record of the topology that processed records last, and of the schemas of what it has
stored. ``take_over_plan`` compares it with the topology that is about to start: ``losses`` are the stores and topics
that would lose content (``unprocessed`` counts the records that wait in a topic), ``ways_on`` is what users can do
about that. ``hand_over_record`` is the record by which a backfill says whether its hand-over is complete. Nothing here
changes topics: ``runtime.startup`` does.
"""
