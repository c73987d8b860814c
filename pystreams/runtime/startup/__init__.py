"""Checks and preparations before the first thread starts; a client that cannot run is refused here.

Begin with ``client_start``, which does all of it in order. ``client_take_over`` compares the program with the one that
ran last, ``carry_over`` changes topics for it (content that is dropped or renamed). ``retention_check`` refuses to
write records that their topics would delete at once, from what ``oldest_input`` finds and ``topics.oldest_output``
computes.
"""
