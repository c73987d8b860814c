"""The progress of a backfill, as people see it: a bar for each slice.

Begin with ``slice_meter``, which adds up the reports of tasks. ``terminal`` and ``notebook`` draw the bars; ``showing``
chooses between them for a program. The command line has lines, too, where there is no terminal.
"""
