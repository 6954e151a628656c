"""console-producer and console-consumer: records typed and printed, as Apache Kafka's tools do it."""
