"""The topics and partitions that this broker has, kept equal to the cluster's image."""
