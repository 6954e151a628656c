"""Where Spark looks for `format("moldau")`: it imports each installed `pyspark_*` package and takes `DefaultSource`."""

from moldau.spark.source import MoldauDataSource as DefaultSource

__all__ = ["DefaultSource"]
