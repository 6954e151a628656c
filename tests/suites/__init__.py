"""Test suites that others wrote, and tools they test brokers with, against Apache Kafka and against us."""
