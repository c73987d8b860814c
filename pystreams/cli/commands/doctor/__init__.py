"""``pystreams doctor``: whether an application can run here, before it runs. Nothing is changed.

Begin with ``command``, which prints the findings and chooses the exit code.

- ``examination`` runs one check after the other, and leaves out a check whose ground is missing: without a log, topics
  cannot be looked at.
- ``machine`` has the checks of this machine: versions, open files, memory, the folder for state.
- ``log_checks`` has the checks of the log and of what the application has there: topics, settings, the last run, the
  group.
- ``finding`` is the result of a check: good, a remark, or bad, with what to do.
"""
