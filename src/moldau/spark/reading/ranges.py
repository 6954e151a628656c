"""A range of offsets as Arrow batches of raw columns: the fast way where the listener is plain, librdkafka else."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pyarrow as pa

from moldau.spark.offsets.bounds import OffsetRange
from moldau.spark.reading.fetching import LeftToLibrary, can_fetch, fetch_range
from moldau.spark.reading.librdkafka import read_by_library
from moldau.spark.reading.range_settings import RangeReading

LOGGER = logging.getLogger(__name__)


def read_range(wanted: OffsetRange, reading: RangeReading) -> Iterator[pa.RecordBatch]:
    """Every record of the range that readers may see, in order; an end among control records is an end too."""
    if reading.may_fetch and can_fetch(reading.client):
        try:
            yield from fetch_range(wanted, reading.client, reading.columns)
            return
        except LeftToLibrary as left:
            LOGGER.info("%s from offset %d on is read by librdkafka: %s", wanted.place, left.position, left)
            wanted = OffsetRange(wanted.place, left.position, wanted.end)
    yield from read_by_library(wanted, reading)
