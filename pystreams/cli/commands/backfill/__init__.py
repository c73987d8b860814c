"""``pystreams backfill``, from its options to its report.

In the order in which they come into play:

- ``command``: the options, with their help. ``options``: their values, and which of them contradict each other.
- ``choosing``: the choice of ``--master auto``.
- ``inputs``, ``outputs``: the values of ``--source``, ``--until``, ``--hand-over`` and ``--emit``.
- ``program``: the application, as workers can import it.
- ``job``: plans, checks, computes and hands over. Begin here. ``from_snapshot``: hands over without computing.
- ``progress``, ``report``: the display while it runs, and the tables before and after. ``report_json``: these for
  programs.

The work is done by ``pystreams.backfill``; this package makes its arguments from text and prints its results.
"""
