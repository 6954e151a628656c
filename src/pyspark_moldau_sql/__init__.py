"""Where Spark looks for `format("moldau_sql")`: it takes `DefaultSource` of each `pyspark_*` package."""

from moldau.spark.tables.databases.target import SqlSource as DefaultSource

__all__ = ["DefaultSource"]
