"""`moldau acls --add …`: the options of Apache Kafka's tool, beside our own form of it."""
