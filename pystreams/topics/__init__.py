"""The topics of an application: those that its users must create, and its internal ones.

Begin with ``topic_plan``, which says which topics must exist with how many partitions and settings, and creates or
verifies them; ``users_topics`` lists those that the application reads or writes and does not create.
``oldest_output`` computes the times of what is written to them. ``committed_batches`` reads a partition up to its end,
outside of any task.
"""
