"""The plan of a backfill, made before it reads any record.

- ``slices``: the plan itself: which sub-topology is computed when, with which inputs, stores and tasks. Begin here.
- ``dependencies``: which inputs must be complete before others can be read.
- ``cut``: the offsets that are read of each input. ``manifest``: plan and cut as they are kept, with what is computed.
- ``boundaries``: what is at the boundaries between tables and the log, and what looks like a loss. ``moments``: times
  as a user gives them.
- ``rules``: settings and sources that a result depends on; they must not change while a backfill is resumed.
- ``ways``: how each aggregation is computed. ``folding``: which ones hold their results until they are final;
  ``combining``: which ones begin before their repartition topic.
- ``notes``: for the plan's reader: where live may give another result, and what a backfill leaves out.

Nothing here runs tasks or knows where slices are staged.
"""
