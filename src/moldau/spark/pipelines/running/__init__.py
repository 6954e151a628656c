"""Plans on Spark: their frames, their queries, and what is told of both."""
