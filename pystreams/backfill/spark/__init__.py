"""Backfills on Spark. The only part of pystreams that imports pyspark: install ``pystreams-engine[backfill]``."""
