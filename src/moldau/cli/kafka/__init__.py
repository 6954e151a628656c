"""Tools that take the options of Apache Kafka's own and print what those print."""
