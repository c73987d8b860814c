"""The hand-over of a computed backfill to a live application.

- ``hand_over``: the steps, from the checks to the last transaction. Begin here.
- ``checks``: whatever can be refused before anything is written; ``retention`` needs the times of the results for it.
  ``cut_backfill`` is what they need of a backfill.
- ``publishing``: the changelog of one store partition; ``last_values``: the records of an earlier run in it;
  ``version_topics``: the changelogs of versioned stores, which are made anew.
- ``emit``: records for output topics, to the topics themselves (``emit_to_topics``), to Parquet (``emit_to_files``), or
  as rows of tables (``emit_to_tables``).

The record that keeps an application from starting on half a hand-over is read by the live side, too, and is defined
there.
"""
