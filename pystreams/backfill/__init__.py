"""History over the same topology: plan, cut, compute, publish, and hand over to the live application."""
