"""The types of groups, by Kafka's names, and the protocols of consumers."""

from __future__ import annotations

CLASSIC, CONSUMER, SHARE, STREAMS = TYPES = ("Classic", "Consumer", "Share", "Streams")
CONSUMER_PROTOCOLS = ("consumer", "")  # the protocol of a group that only commits offsets is empty
