"""How far flows have come in the topics that they read, as the cluster knows it: by the groups of their queries."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException

from moldau.core.ids import TopicPartition
from moldau.spark.clients.cluster import Cluster
from moldau.spark.clients.librdkafka import NoAnswer, admin_client
from moldau.spark.dead_letters.letters import LETTERS_GROUP, SKIPPED_GROUP, letter_group
from moldau.spark.dead_letters.rejections import OnError, rejection_rules
from moldau.spark.offsets.bounds import Offsets
from moldau.spark.offsets.progress import group_of
from moldau.spark.option_values import OptionError
from moldau.spark.options import SourceOptions, source_options
from moldau.spark.pipelines.declarative.elements import DataSource
from moldau.spark.pipelines.running.reports.rejected import Ledger
from moldau.spark.secrets import is_secret

ANSWER_S_MAX = 5.0


@dataclass(frozen=True, slots=True)
class Position:
    """`done` is the sum of the offsets up to which records were read, `lag` what is left."""

    done: int
    lag: int


@dataclass(frozen=True, slots=True)
class FlowTopics:
    """A stream of records, and the group that its query commits to."""

    options: SourceOptions
    group: str

    def position(self, *, anew: bool = False) -> Position:
        """`anew` is where a flow stands that forgets what it has read. Raises KafkaException or NoAnswer."""
        cluster = Cluster(self.options.client)
        places = cluster.places(self.options.subscription)
        committed = {} if anew else self._committed()
        # What nobody has read yet counts from where the partition begins.
        done = cluster.earliest([place for place in places if place not in committed]) | committed
        latest = cluster.latest(places)
        return Position(
            sum(done[place] for place in places), sum(max(0, latest[place] - done[place]) for place in places)
        )

    def _committed(self) -> Offsets:
        admin = admin_client(self.options.client)
        asked = admin.list_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(self.group)], request_timeout=ANSWER_S_MAX
        )
        found = asked[self.group].result().topic_partitions
        return {TopicPartition(each.topic, each.partition): each.offset for each in found if each.offset >= 0}

    def as_json(self) -> dict[str, Any]:
        """For whoever looks while nothing runs; passwords are not written down, only their names."""
        client = dict(self.options.client)
        withheld = sorted(filter(is_secret, client))
        return {
            "group": self.group,
            "client": {key: value for key, value in client.items() if key not in withheld},
            "withheld": withheld,
        }

    def ledger(self) -> Ledger | None:
        """Where tasks note the records that they could not read; None where such a record ends the query."""
        on_error = rejection_rules(self.options.formats).on_error
        if on_error is OnError.FAIL:
            return None
        kind = LETTERS_GROUP if on_error is OnError.DEADLETTER else SKIPPED_GROUP
        return Ledger(self.options.client, letter_group(self.group, kind, 0))


def topics_of(query_name: str, sources: Iterable[DataSource]) -> tuple[FlowTopics, ...]:
    """Spark names a flow's query after the flow, with catalog and database."""
    found = []
    for source in sources:
        try:
            options = source_options(source.options, streaming=True)
        except OptionError:
            continue  # Spark tells it, with the flow that has it
        if options.commits_offsets:
            group = options.group_id or group_of(options.group_prefix, options.query_name or query_name)
            found.append(FlowTopics(options, group))
    return tuple(found)


def position_of(topics: Iterable[FlowTopics], *, anew: bool = False) -> Position | None:
    """None where a flow reads no topics, or the cluster does not answer."""
    try:
        found = [each.position(anew=anew) for each in topics]
    except (KafkaException, NoAnswer):
        return None
    return Position(sum(each.done for each in found), sum(each.lag for each in found)) if found else None
