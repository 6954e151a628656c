"""TLS: from Kafka's `ssl.*` keys to contexts and sessions. It knows nothing of the broker."""
