"""Topics that results go into: made before the first of them, for a transaction can't note progress in one to be."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import NewTopic

from moldau.spark.clients.librdkafka import ANSWER_S_MAX, NoAnswer, admin_client, reason
from moldau.spark.clients.settings import client_settings
from moldau.spark.option_values import OptionValues


def ensure_topic(options: Mapping[str, str], topic: str) -> None:
    """With the cluster's defaults, unless it is there. Raises NoAnswer."""
    client = client_settings(OptionValues(options), side="producer")
    admin = admin_client(client)
    try:
        admin.create_topics([NewTopic(topic)], request_timeout=ANSWER_S_MAX)[topic].result()
    except KafkaException as wrong:
        if wrong.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise NoAnswer(f"topic {topic} can't be made: {reason(wrong)}") from None
