"""Interactive queries: look-ups into the stores of a client from other threads.

Begin with ``store_queries``, the object that users get. Stream threads read the latest state (``latest_reads``; event
loops ask them with ``gathered_reads``). The calling thread itself reads the last commit (``committed_reads``) and the
stores of global tables (``global_queries``). ``answers`` are answers and the demands on them, ``position`` is the
input that an answer includes. ``placing`` finds the partition of a key, ``whereabouts`` the member that has it.
"""
