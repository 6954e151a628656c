"""Verdicts over HTTP: Burrow's paths, Prometheus, health."""
