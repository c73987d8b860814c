"""The plan of an application: nodes, names, sub-topologies, partitions; how it is described and recognised."""
