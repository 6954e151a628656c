"""`moldau topics` with Apache Kafka's options."""
