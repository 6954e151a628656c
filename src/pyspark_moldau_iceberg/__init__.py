"""Where Spark looks for `format("moldau_iceberg")`: it takes `DefaultSource` of each installed `pyspark_*` package."""

from moldau.spark.tables.iceberg.target import IcebergSource as DefaultSource

__all__ = ["DefaultSource"]
