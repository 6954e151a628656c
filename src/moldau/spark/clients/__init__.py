"""How Spark's driver and workers reach a cluster: through librdkafka, or directly where listeners are plain."""
