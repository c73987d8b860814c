"""Checks and preparations before the first thread starts; a client that cannot run is refused here.

Begin with ``client_start``, which does everything in order. ``client_take_over`` compares the program with the one that
ran last, ``carry_over`` changes topics for a new program (content that is dropped or renamed). ``retention_check``
refuses to write records that their topics would delete at once: ``oldest_input`` finds the oldest input records, and
``topics.oldest_output`` computes the times of their results.
"""
