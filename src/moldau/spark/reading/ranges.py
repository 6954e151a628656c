"""A range of offsets as Arrow batches of raw columns: by requests of our own where they do, by librdkafka else."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pyarrow as pa

from moldau.spark.clients.cluster import Cluster
from moldau.spark.offsets.bounds import OffsetRange
from moldau.spark.reading.data_loss import Loss, OtherTopic, TopicMadeAnew, check_same_topic, raise_or_warn
from moldau.spark.reading.fetching import LeftToLibrary, can_fetch, fetch_range
from moldau.spark.reading.librdkafka import read_by_library
from moldau.spark.reading.range_settings import RangeReading

LOGGER = logging.getLogger(__name__)


MADE_ANEW = "the topic was deleted and made anew while they were read"


def read_range(wanted: OffsetRange, reading: RangeReading, *, topic_id: str | None = None) -> Iterator[pa.RecordBatch]:
    """Every record of the range that readers may see, in order; an end among control records is an end too.

    Topics are read by their names. With the id of the topic that is meant, records of another one do not count.
    """
    is_empty = True
    try:
        for batch in _read(wanted, reading, topic_id):
            is_empty = False
            yield batch
    except OtherTopic:
        if not (is_empty or reading.fails_on_data_loss):
            raise TopicMadeAnew(wanted.place) from None
        raise_or_warn([Loss(wanted.place, wanted.start, wanted.end, MADE_ANEW)], fail=reading.fails_on_data_loss)


def _read(wanted: OffsetRange, reading: RangeReading, topic_id: str | None) -> Iterator[pa.RecordBatch]:
    if reading.may_fetch and can_fetch(reading.client):
        try:
            yield from fetch_range(wanted, reading.client, reading.columns, topic_id=topic_id)
            return
        except LeftToLibrary as left:
            LOGGER.info("%s from offset %d on is read by librdkafka: %s", wanted.place, left.position, left)
            wanted = OffsetRange(wanted.place, left.position, wanted.end)
    yield from read_by_library(wanted, reading)
    if topic_id is not None:
        topic = wanted.place.topic
        check_same_topic(topic_id, Cluster(reading.client).described({topic}).topic_ids.get(topic))
