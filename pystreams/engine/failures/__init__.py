"""Errors of records: calls of exception handlers, messages, and counts of the records that were left out.

Begin with ``handling``, which calls the configured handlers and raises the error that stops a task. ``origins`` finds
the user's function behind a step, ``left_out`` logs and counts the records that were skipped, dropped or moved to the
dead-letter topic. ``lateness`` describes how late records were and which grace they needed, ``drop_counts`` has metrics
of drops and commits their numbers. ``unmatched`` finds the joins in which no record has a match.
"""
