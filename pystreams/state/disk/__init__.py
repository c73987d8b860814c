"""State on disk.

Begin with ``rocksdb``, a store in RocksDB. The other modules: a store as of one moment (``rocksdb_snapshot``), the
memory that databases share (``rocksdb_memory``), an application's directory with its locks (``directory``), the numbers
of the processes that share it (``worker_number``), and notes in which each of them lists its members
(``member_notes``). ``open_files`` raises the limit of open files. ``scratch`` is a client's own folder for unfinished
files.

This package handles only bytes and files; stores and specs are above it.
"""
