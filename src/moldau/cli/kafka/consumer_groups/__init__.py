"""`moldau consumer-groups`, by Apache Kafka's options."""
