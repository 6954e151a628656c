"""Metrics sent to an OpenTelemetry collector, by a process of their own: what it imports and waits for holds nobody."""
