"""``pystreams get`` and ``pystreams scan``: look into the stores of a running application.

Begin with ``command``, the only module, which has both. ``get`` prints the value of one key, ``scan`` the entries of a
store. Both ask an instance of the application over HTTP; that instance asks the others for keys that it does not have.
The address comes from ``--url``, or from the members of the application's group.
"""
