"""The topology of an application: nodes, names, sub-topologies, partitions; its description and its fingerprint."""
