"""``pystreams get`` and ``pystreams scan``: look into the stores of a running application.

``command`` has the two.
"""
