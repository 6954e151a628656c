"""OpenTelemetry: metrics that clients push are read, and those of this process are exported to a collector."""
