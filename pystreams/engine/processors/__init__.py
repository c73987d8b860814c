"""The surroundings of operators and of users' processors.

Begin with ``processor_context``, the context that a processor gets. ``transformer`` and ``wrapped_step`` adapt other
kinds of steps to it, ``operator_environment`` is the counterpart for the operators of the DSL. ``punctuation`` keeps
the schedules, in the order of Java's priority queue (``java_heap``). ``same_key`` detects that a processor of fixed
keys has changed a key.
"""
