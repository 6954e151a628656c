"""Records that only Apache Kafka writes, so that its files can be read."""
