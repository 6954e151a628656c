"""`moldau configs`, with Apache Kafka's options."""
