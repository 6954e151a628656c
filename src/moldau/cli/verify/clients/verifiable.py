"""The verifiable producer and consumer as a scenario sees them: what was acknowledged, refused, read and assigned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moldau.cli.verify.checking import Acknowledged, Read
from moldau.cli.verify.clients.child import CONSUMER, COPIER, OPEN_TRANSACTION, PRODUCER
from moldau.cli.verify.clients.process import ClientProcess

KEYS = 20
CLASSIC = "classic"


class Sender:
    """Values are PREFIX.0, PREFIX.1, ...; no two senders to one topic have the same prefix."""

    def __init__(self, settings: Mapping[str, str], topic: str, *, prefix: int, rate: int, acks: int) -> None:
        self.acknowledged: list[Acknowledged] = []
        self.refused: list[str] = []
        self.is_idempotent = acks == -1
        wanted = {"retries": "2147483647", "enable.idempotence": "true"} if self.is_idempotent else {"retries": "5"}
        words = ["--topic", topic, "--throughput", str(rate), "--acks", str(acks)]
        words += ["--value-prefix", str(prefix), "--repeating-keys", str(KEYS)]
        self.process = ClientProcess(PRODUCER, words, {**wanted, **settings}, self._hear)

    def _hear(self, event: dict[str, Any], at_s: float) -> None:
        if event["name"] == "producer_send_success":
            self.acknowledged.append(Acknowledged(event["value"], event["partition"], event["offset"], at_s))
        elif event["name"] == "producer_send_error":
            self.refused.append(f"{event['value']}: {event['message']}")

    @property
    def times_s(self) -> list[float]:
        return [each.at_s for each in self.acknowledged]


class Member:
    """A consumer of a group. `instance` makes it a static member."""

    def __init__(
        self,
        settings: Mapping[str, str],
        topic: str,
        group: str,
        *,
        protocol: str = CLASSIC,
        session_ms: int | None = None,
        instance: str | None = None,
    ) -> None:
        self.records: list[Read] = []
        self.values: set[str] = set()
        self.assigned: set[int] = set()
        words = ["--topic", topic, "--group-id", group, "--group-protocol", protocol, "--verbose"]
        if protocol == CLASSIC and session_ms is not None:
            words += ["--session-timeout", str(session_ms)]
        if instance is not None:
            words += ["--group-instance-id", instance]
        # librdkafka asks for metadata of a leader that went away after this long; Kafka's own clients do at once.
        wanted = {"isolation.level": "read_committed", "allow.auto.create.topics": "false"}
        self.process = ClientProcess(CONSUMER, words, {**wanted, **settings}, self._hear)

    def _hear(self, event: dict[str, Any], at_s: float) -> None:
        if event["name"] == "record_data":
            self.records.append(Read(event["value"], event["partition"], event["offset"], at_s))
            self.values.add(event["value"])
        elif event["name"] == "partitions_assigned":
            self.assigned |= {each["partition"] for each in event["partitions"]}
        elif event["name"] == "partitions_revoked":
            self.assigned -= {each["partition"] for each in event["partitions"]}


class Copier:
    """Copies a topic into another one in transactions; started again it goes on where its last transaction ended."""

    def __init__(self, settings: Mapping[str, str], source: str, target: str, name: str) -> None:
        self.transactions = 0
        words = ["--source", source, "--target", target, "--name", name]
        self.process = ClientProcess(COPIER, words, settings, self._hear)

    def _hear(self, event: dict[str, Any], _: float) -> None:
        self.transactions += event["name"] == "transaction_committed"


class OpenTransaction:
    """A producer that has sent into a transaction and never ends it."""

    def __init__(self, settings: Mapping[str, str], topic: str, name: str, *, timeout_ms: int) -> None:
        self.is_open = False
        words = ["--topic", topic, "--name", name, "--transaction-timeout-ms", str(timeout_ms)]
        self.process = ClientProcess(OPEN_TRANSACTION, words, settings, self._hear)

    def _hear(self, event: dict[str, Any], _: float) -> None:
        self.is_open = self.is_open or event["name"] == "transaction_open"


Client = Sender | Member | Copier | OpenTransaction
