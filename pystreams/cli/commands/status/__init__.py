"""``pystreams status``, ``lag`` and ``threads``: an application as its log and its instances show it.

Begin with ``command``, which has the three commands, and repeats them with ``--watch``.

- ``look`` is an application at one moment: it asks the log, and the instances that run.
- ``instances`` asks the instances over HTTP for what the log does not know: restores, and the activities of threads.
- ``showing`` makes tables and JSON of members, tasks and lag.
- ``threads`` makes tables and JSON of the activities of threads.
"""
