"""Apache Kafka's own tools, with their options and lines."""
