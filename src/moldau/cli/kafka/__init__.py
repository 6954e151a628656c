"""Tools that take Apache Kafka's own options and print its lines."""
