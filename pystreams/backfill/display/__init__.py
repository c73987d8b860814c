"""Shows the progress of a backfill to people: a bar for each slice.

Begin with ``slice_meter``.

- ``slice_meter`` adds up the reports of tasks: the work of each slice that is done and left, and its speed.
- ``terminal`` draws the bars on a terminal.
- ``notebook`` draws the bars below the cell of a notebook.
- ``showing`` chooses between the two for a backfill that a program runs. The command line chooses for itself: it also
  has log lines, for where there is no terminal.
"""
