"""The REST proxy: Confluent's v2 and v3 over HTTP, and what v3 lacks: reading records as they come."""
