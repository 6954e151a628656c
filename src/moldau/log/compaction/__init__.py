"""Log compaction: which logs are cleanable, the offset map, and rewriting their segments."""
