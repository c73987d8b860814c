"""The topics of an application: those that its users must create, and its internal ones.

Begin with ``topic_plan``.

- ``topic_plan`` says which topics must exist, with how many partitions and which settings, and checks those that exist.
  Internal topics that are missing are created at the start.
- ``users_topics`` lists the topics that the application reads or writes and does not create itself.
- ``oldest_output`` computes the oldest times of what is written to the topics, from the times of the inputs: a topic
  that deletes by time must not delete results at once.
- ``committed_batches`` reads a partition up to its end, outside of any task: changelogs, and records that an
  application keeps.
"""
