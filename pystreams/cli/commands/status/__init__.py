"""``pystreams status``, ``lag`` and ``threads``: an application as its log and its instances show it.

Begin with ``command``, which has the commands and repeats them; ``look`` asks the log, ``instances`` those that run;
``showing`` and ``threads`` make tables and JSON.
"""
