"""``pystreams doctor``: whether an application can run here, before it does. Nothing is changed.

Begin with ``command``. ``finding`` is what it prints. ``examination`` runs one check after the other, and skips those
whose ground is missing: ``machine`` has those of this machine, ``log_checks`` those of the log and its topics.
"""
