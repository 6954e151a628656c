"""Dashboards for Grafana and alert rules for Prometheus, for what brokers and the lag monitor tell."""
