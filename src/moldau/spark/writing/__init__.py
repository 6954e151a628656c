"""Writing into topics: what Spark asks of a sink, at least once and exactly once."""
