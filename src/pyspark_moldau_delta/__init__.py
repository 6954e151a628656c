"""Where Spark looks for `format("moldau_delta")`: it takes `DefaultSource` of each installed `pyspark_*` package."""

from moldau.spark.tables.delta.target import DeltaSource as DefaultSource

__all__ = ["DefaultSource"]
