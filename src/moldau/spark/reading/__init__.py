"""Reading topics: how a read is planned and split into tasks, and how ranges of offsets become Arrow batches."""
