"""RocksDB: the only room that knows it."""
