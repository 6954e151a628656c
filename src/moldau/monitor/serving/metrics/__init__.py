"""Prometheus' text, by the names of dashboards: Burrow's, kafka_exporter's, kafka-lag-exporter's and KMinion's.

All of it is made of the last look: a scrape asks no broker. Names of kafka_exporter and KMinion have a label `cluster`
only where several clusters are watched, since their dashboards know none.
"""
