"""The REST proxy, over HTTP, before a real Moldau and a real Apache Kafka."""
