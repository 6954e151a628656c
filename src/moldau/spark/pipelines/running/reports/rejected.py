"""Records that a query could not read, counted where its tasks note them: in groups beside the query's own."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException

from moldau.client.security import ClientSettings
from moldau.spark.clients.librdkafka import admin_client
from moldau.spark.dead_letters.letters import LETTERS_GROUP, SKIPPED_GROUP, done_from, letter_group
from moldau.spark.dead_letters.rejections import OnError, rejection_rules
from moldau.spark.offsets.progress import group_of
from moldau.spark.options import source_options
from moldau.spark.pipelines.plan import Connector, Kind, Plan, Query, Source
from moldau.spark.pipelines.running.frames.sources import topic_options

LOOK_EVERY_S = 5.0
# Whoever runs a pipeline on a far cluster may not reach the brokers; the run must not wait for them again and again.
LOOK_AGAIN_S = 60.0
ANSWER_S_MAX = 5.0


@dataclass(frozen=True, slots=True)
class Ledger:
    """The groups in which the tasks of a query note what they left out: the first's name, others add a number."""

    client: ClientSettings
    group: str


def ledgers_of(query: Query, query_name: str, plan: Plan) -> frozenset[Ledger]:
    """None where all sources end the query at the first record that they can't read."""
    return frozenset(ledger for source in streams_of(query, plan) for ledger in _ledgers(source, query_name, plan))


def streams_of(query: Query, plan: Plan) -> Iterator[Source]:
    return (one for one in sources_of(query, plan) if one.kind is Kind.STREAM)


def sources_of(query: Query, plan: Plan) -> Iterator[Source]:
    """What a query reads, directly and through views."""
    reached = plan.upstream(query.inputs)
    return (one for one in plan.sources if one.name.lower() in reached)


def _ledgers(source: Source, query_name: str, plan: Plan) -> Iterator[Ledger]:
    subscribe = "subscribePattern" if source.endpoint.connector is Connector.PATTERN else "subscribe"
    said = topic_options(source.endpoint, plan) | {subscribe: source.endpoint.location}
    options = source_options(said, streaming=True)
    on_error = rejection_rules(options.formats).on_error
    if on_error is not OnError.FAIL:
        own = options.group_id or group_of(options.group_prefix, options.query_name or query_name)
        kind = LETTERS_GROUP if on_error is OnError.DEADLETTER else SKIPPED_GROUP
        yield Ledger(options.client, letter_group(own, kind, 0))


class RejectedRecords:
    """How many there are by topic, over all runs of a query."""

    def __init__(self, ledgers: frozenset[Ledger]) -> None:
        self.by_topic: dict[str, int] = {}
        self._ledgers = ledgers
        self._is_stale = False
        self._look_s = 0.0

    def outdate(self) -> None:
        """The query has come further."""
        self._is_stale = bool(self._ledgers)

    def refresh(self, *, now_s: float, at_once: bool = False) -> None:
        """Looks if there may be more and the last look is some time ago; a broker that doesn't answer is left alone."""
        if not self._is_stale or (now_s < self._look_s and not at_once):
            return
        counts: Counter[str] = Counter()
        try:
            for ledger in self._ledgers:
                counts.update(_counted(ledger))
        except KafkaException:
            self._look_s = now_s + LOOK_AGAIN_S
            return
        self.by_topic = dict(sorted(counts.items()))
        self._is_stale, self._look_s = False, now_s + LOOK_EVERY_S


def _counted(ledger: Ledger) -> Counter[str]:
    admin = admin_client(ledger.client)
    its = re.compile(re.escape(ledger.group) + r"(\.\d+)?")
    there = admin.list_consumer_groups(request_timeout=ANSWER_S_MAX).result().valid
    counts: Counter[str] = Counter()
    for group in (one.group_id for one in there if its.fullmatch(one.group_id)):
        asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)], request_timeout=ANSWER_S_MAX)
        for place in asked[group].result().topic_partitions:
            counts[place.topic] += done_from(place).letters
    return +counts
