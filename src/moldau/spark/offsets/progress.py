"""Offsets of a streaming query committed to a group named after it, so that every Kafka tool sees its lag.

Spark tells the name and id of a query to its tasks only, and asks only the driver's side to commit. So the first task
of a run leaves the query's identity in the cluster, as the metadata of an offset in a group of that run, and the
driver's side picks it up there. With `groupId` or `queryName` given nothing of that is needed.
"""

from __future__ import annotations

import json
import logging
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from confluent_kafka import KafkaException
from confluent_kafka import TopicPartition as ClientPartition

from moldau.client.security import ClientSettings
from moldau.core.ids import TopicPartition
from moldau.spark.clients.librdkafka import ANSWER_S_MAX, admin_client, group_consumer, reason
from moldau.spark.offsets.bounds import Offsets
from moldau.spark.offsets.committed import committed
from moldau.spark.streaming_batch import DESCRIPTION_PROPERTY, QUERY_PROPERTY, job_property

LOGGER = logging.getLogger(__name__)

REFRESH_S = 3_600.0  # brokers forget the offsets of a group without members after days; an idle query must not fade


@dataclass(frozen=True, slots=True)
class QueryIdentity:
    """The id that the checkpoint keeps, and the name that the user gave, if any."""

    query_id: str
    name: str | None

    @property
    def label(self) -> str:
        return self.name or self.query_id


def identity_of(query_id: str | None, description: str | None) -> QueryIdentity | None:
    """Spark describes a streaming job as `name`, `id = …` and so on, in lines; without a name that line is missing."""
    if not query_id:
        return None
    first = re.split(r"<br/?>|\n", description or "")[0].strip()
    return QueryIdentity(query_id, None if not first or first.startswith("id = ") else first)


def group_of(prefix: str, label: str) -> str:
    """The group that a query is known by."""
    return f"{prefix}-{label}"


def running_identity() -> QueryIdentity | None:
    """The streaming query that this task works for; None outside of one."""
    return identity_of(job_property(QUERY_PROPERTY), job_property(DESCRIPTION_PROPERTY))


def announce(client: ClientSettings, meeting_group: str, place: TopicPartition) -> None:
    """On a task: leave the query's identity where the driver's side looks for it. A read never fails for this."""
    identity = running_identity()
    if identity is None:
        return
    metadata = json.dumps({"id": identity.query_id, "name": identity.name})
    try:
        group_consumer(client, meeting_group).commit(
            offsets=[ClientPartition(place.topic, place.partition, 0, metadata)], asynchronous=False
        )
    except KafkaException as wrong:
        LOGGER.warning("the query's offsets will not be committed: group %s: %s", meeting_group, reason(wrong))


class Progress:
    """On the driver's side: commits the end of each batch; failures are told once and never stop a query."""

    def __init__(self, client: ClientSettings, *, prefix: str, group_id: str | None, query_name: str | None) -> None:
        self.client = client
        self.prefix = prefix
        self.group_id = group_id or (group_of(prefix, query_name) if query_name else None)
        self.meeting_group = f"{prefix}-run-{uuid.uuid4().hex}"
        self.committed: Offsets = {}
        self.refresh_at_s = 0.0
        self.has_complained = False

    @property
    def announcement(self) -> str | None:
        """The group in which a task shall leave the identity, as long as it is not known."""
        return self.meeting_group if self.group_id is None else None

    def commit(self, offsets: Mapping[TopicPartition, int], *, now_s: float) -> bool:
        """Whether there was something to commit and it was committed."""
        if not offsets or (offsets == self.committed and now_s < self.refresh_at_s):
            return False
        try:
            if self.group_id is None:
                self._find_group(offsets)
            if self.group_id is None:
                return False
            group_consumer(self.client, self.group_id).commit(
                offsets=[ClientPartition(place.topic, place.partition, end) for place, end in offsets.items()],
                asynchronous=False,
            )
        except KafkaException as wrong:
            self._complain(wrong)
            return False
        self.committed, self.refresh_at_s = dict(offsets), now_s + REFRESH_S
        return True

    def _find_group(self, offsets: Mapping[TopicPartition, int]) -> None:
        places = [ClientPartition(place.topic, place.partition) for place in offsets]
        found = committed(group_consumer(self.client, self.meeting_group), places)
        metadata = next((each.metadata for each in found if each.metadata), None)
        if metadata is None:
            return  # no task has run yet
        told = json.loads(metadata)
        self.group_id = group_of(self.prefix, QueryIdentity(told["id"], told["name"]).label)
        deleted = admin_client(self.client).delete_consumer_groups([self.meeting_group], request_timeout=ANSWER_S_MAX)
        deleted[self.meeting_group].result()

    def _complain(self, wrong: KafkaException) -> None:
        if not self.has_complained:
            where = f"group {self.group_id}" if self.group_id else "its group"
            LOGGER.warning("offsets of the query are not committed to %s: %s", where, reason(wrong))
        self.has_complained = True
