"""Interactive queries: look-ups into the stores of a client from other threads.

Begin with ``store_queries``, which is what users hold. Stream threads answer for what they have processed
(``latest_reads``; event loops ask them with ``gathered_reads``), the calling thread reads the last commit itself
(``committed_reads``) and the stores of global tables (``global_queries``). ``answers`` are answers and the demands on
them, ``position`` is the input that an answer includes. ``placing`` finds the partition of a key, ``whereabouts`` the
member that has it.
"""
