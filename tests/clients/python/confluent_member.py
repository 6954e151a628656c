"""A member of a group on confluent-kafka (librdkafka); tests/rebalance/members.py describes its lines."""

from __future__ import annotations

import json
import sys
import threading
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from tests.clients.python.member_events import Partition, tell, tell_committed, tell_partitions, tell_read

POLL_S = 0.05
BATCH_MAX = 500
# A rebalance is under way, or was completed and this member has not yet heard of it.
UNDER_WAY = {KafkaError.REBALANCE_IN_PROGRESS, KafkaError.ILLEGAL_GENERATION}


class Member:
    def __init__(self, options: dict[str, Any]) -> None:
        self.untold: dict[Partition, tuple[int, int]] = {}
        self.unsaved: dict[Partition, int] = {}  # a cooperative member reads on while its commits are refused
        self.consumer = Consumer(settings(options))
        self.consumer.subscribe(
            [f"^{options['pattern']}"] if options["pattern"] else options["topics"],
            on_assign=lambda _, given: tell_partitions("assigned", ids(given)),
            on_revoke=self.give_up,
            on_lost=self.lose,
        )

    def give_up(self, _: Any, revoked: list[TopicPartition]) -> None:
        self.save()
        tell_partitions("revoked", ids(revoked))

    def lose(self, _: Any, lost: list[TopicPartition]) -> None:
        self.untold.clear()
        self.unsaved.clear()
        tell_partitions("lost", ids(lost))

    def run(self, stopped: threading.Event) -> None:
        while not stopped.is_set():
            self.read()
            self.save()
        self.consumer.close()

    def read(self) -> None:
        wait_s = POLL_S
        for _ in range(BATCH_MAX):
            message = self.consumer.poll(wait_s)
            if message is None:
                return
            error = message.error()
            if error is not None:
                tell("failed", what="read", message=str(error))
                return
            wait_s = 0.0
            key = message.topic(), message.partition()
            first, _ = self.untold.get(key, (message.offset(), 0))
            self.untold[key] = first, message.offset()

    def save(self) -> None:
        """Report what was read and commit it; a member that gives partitions up does so before."""
        if self.untold:
            tell_read(self.untold)
            self.unsaved |= {key: last + 1 for key, (_, last) in self.untold.items()}
            self.untold.clear()
        if self.unsaved:
            self.commit()

    def commit(self) -> None:
        wanted = [TopicPartition(topic, index, offset) for (topic, index), offset in self.unsaved.items()]
        try:
            self.consumer.commit(offsets=wanted, asynchronous=False)
            tell_committed(self.unsaved)
            self.unsaved.clear()
        except KafkaException as error:
            if error.args[0].code() not in UNDER_WAY:
                tell("failed", what="commit", message=str(error))
                self.unsaved.clear()


def ids(partitions: list[TopicPartition]) -> list[Partition]:
    return [(each.topic, each.partition) for each in partitions]


def settings(options: dict[str, Any]) -> dict[str, Any]:
    chosen: dict[str, Any] = {
        "bootstrap.servers": options["bootstrap"],
        "group.id": options["group"],
        "client.id": options["name"],
        "group.protocol": options["protocol"],
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "topic.metadata.refresh.interval.ms": options["metadata_age_ms"],
        "reconnect.backoff.max.ms": 200,
    }
    if options["instance"]:
        chosen["group.instance.id"] = options["instance"]
    if options["protocol"] == "consumer":
        chosen["group.remote.assignor"] = options["assignors"][0]
    else:
        chosen["partition.assignment.strategy"] = ",".join(options["assignors"])
        chosen["session.timeout.ms"] = options["session_timeout_ms"]
        chosen["heartbeat.interval.ms"] = options["heartbeat_ms"]
    return chosen


def main() -> None:
    stopped = threading.Event()
    member = Member(json.loads(sys.argv[1]))

    def wait_for_end() -> None:
        sys.stdin.read()
        stopped.set()

    threading.Thread(target=wait_for_end, daemon=True).start()
    member.run(stopped)


if __name__ == "__main__":
    main()
