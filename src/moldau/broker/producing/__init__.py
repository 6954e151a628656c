"""What an append needs around the log: fsync, markers, transactions that are checked."""
