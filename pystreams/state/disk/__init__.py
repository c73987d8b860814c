"""State on a disk: RocksDB (``rocksdb``) and the memory that its databases share (``rocksdb_memory``), the directory of
an application with its locks (``directory``), and the numbers of the processes that share it (``worker_number``).

Bytes and files alone: stores and specs are above.
"""
