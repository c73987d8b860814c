"""``pystreams get`` and ``pystreams scan``: look into the stores of a running application.

Begin with ``command``, which has the two; ``client`` asks the application over HTTP.
"""
