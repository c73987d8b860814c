"""``pystreams verify``, from its options to its report.

- ``command``: the options, with their help.
- ``job``: finds the moment to compare, computes history, and compares. Begin here.
- ``report``: the tables and the last line; ``report_json``: the same for programs.

History is read, computed and shown as by ``backfill``, with its modules. The work is done by
``pystreams.backfill.verification``.
"""
