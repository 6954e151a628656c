"""What Spark knows of the store that a pipeline's table is in, as options of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.spark.pipelines.plan import Connector, Endpoint
from moldau.spark.tables.object_stores import access_by_spark, filled, is_in_s3

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def table_options(endpoint: Endpoint, spark: SparkSession) -> dict[str, str]:
    """The endpoint's own options, and what they leave to the settings that Spark reaches its checkpoints with."""
    own = dict(endpoint.options)
    by_name = {name.lower(): value for name, value in own.items()}
    is_delta = endpoint.connector is Connector.DELTA
    place = endpoint.location if is_delta else by_name.get("warehouse", "")
    is_lake = is_delta or endpoint.connector is Connector.ICEBERG
    # A catalog that has a name has its settings in pyiceberg's configuration, before which these would go.
    if not is_lake or not is_in_s3(place) or "catalog" in by_name:
        return own
    access = access_by_spark(place, lambda key: spark.conf.get(key, None))
    found = access.for_delta() if is_delta else access.for_iceberg()
    prefix = "storage." if is_delta else "catalog."
    return filled(own, {f"{prefix}{name}": value for name, value in found.items()})
