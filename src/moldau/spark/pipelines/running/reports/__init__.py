"""What is told of a run: progress, metrics, lineage, and records that could not be read."""
