"""``pystreams status`` and ``pystreams lag``: an application as its log shows it.

Begin with ``command``, which has both commands and repeats them; ``showing`` makes their tables and their JSON.
"""
