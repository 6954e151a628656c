"""What went in and out, by topic and in all. The sum has no topic label, as exporters of Kafka's JMX have it."""

from __future__ import annotations

from moldau.broker.metrics.metering import Metering
from moldau.coordinator.long_work import LongWork, in_slices
from moldau.core.exposition import COUNTER, Exposition, labelled
from moldau.replication.traffic import TopicTraffic

PREFIX = "kafka_server_brokertopicmetrics_"
BY_TOPIC = (
    ("messagesin", "messages_in", "Records that clients and coordinators appended."),
    ("bytesin", "bytes_in", "Bytes of record batches that clients and coordinators appended."),
    ("bytesout", "bytes_out", "Bytes of record batches that consumers fetched."),
    ("totalproducerequests", "produces", "Partitions in Produce requests."),
    ("failedproducerequests", "failed_produces", "Partitions of Produce requests that failed unexpectedly."),
    ("totalfetchrequests", "fetches", "Partitions in answers to consumers' Fetch requests."),
    ("failedfetchrequests", "failed_fetches", "Partitions of Fetch requests that failed unexpectedly."),
)
OF_ALL = (
    ("replicationbytesin", "replicated_in", "Bytes that this broker fetched from leaders."),
    ("replicationbytesout", "replicated_out", "Bytes that followers fetched from this broker."),
)


async def write_topics(metering: Metering, long_work: LongWork, out: Exposition) -> None:
    metering.forget_topics()
    traffic, total = metering.traffic, TopicTraffic()
    total.add(traffic.gone)  # with those that are there at this moment: what is forgotten in a pause counts once
    metrics = [(f"{PREFIX}{suffix}_total", field, help_text) for suffix, field, help_text in BY_TOPIC]
    columns = [(name, field, out.lines(name, help_text, COUNTER)) for name, field, help_text in metrics]
    async for name, topic in in_slices([*traffic.topics.items()], long_work):
        total.add(topic)
        if topic.has_any:
            labels = labelled({"topic": name})
            for metric, field, lines in columns:
                lines.append(f"{metric}{labels} {getattr(topic, field)}")
    for metric, field, lines in columns:
        lines.append(f"{metric} {getattr(total, field)}")
    for suffix, field, help_text in OF_ALL:
        out.add(f"{PREFIX}{suffix}_total", help_text, {}, getattr(total, field), COUNTER)
    prefix = "kafka_server_replicamanager_"
    out.add(f"{prefix}isrshrinks_total", "Times that a replica left an ISR.", {}, traffic.isr_shrinks, COUNTER)
    out.add(f"{prefix}isrexpands_total", "Times that a replica joined an ISR.", {}, traffic.isr_expands, COUNTER)
    help_text = "Changes of an ISR that the controller refused."
    out.add(f"{prefix}failedisrupdates_total", help_text, {}, traffic.failed_isr_updates, COUNTER)
