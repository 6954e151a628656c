"""Apache Kafka's tools: its options, its columns, its lines."""
