"""`moldau reassign-partitions`."""
