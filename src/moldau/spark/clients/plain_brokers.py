"""A cluster that is spoken to directly: who leads, who coordinates, and connections that are kept.

What it does not know is left to librdkafka, as every setting that it would not follow.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import TypeAlias, TypeVar

from moldau.client.connection import NotAccepted
from moldau.client.security import ClientSettings, security_of
from moldau.core.errors import ErrorCode, ProtocolViolation
from moldau.core.ids import TopicPartition
from moldau.spark.clients.broker_connection import BrokerConnection
from moldau.spark.clients.librdkafka import ANSWER_S_MAX, CLIENT_ID, NoAnswer
from moldau.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from moldau.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from moldau.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from moldau.wire.schema import Message

Address: TypeAlias = tuple[str, int]
Answer = TypeVar("Answer", bound=Message)

# Every broker since 2020 has these versions, and so has Apache Kafka 4.
METADATA_VERSION = 4
FIND_COORDINATOR_VERSION = 2
DESCRIBE_CONFIGS_VERSION = 1
TOPIC_RESOURCE = 2
BATCH_BYTES_CONFIG = "max.message.bytes"
GROUP, TRANSACTION = 0, 1

CLUSTERS_MAX = 4
COORDINATORS_MAX = 1_000  # each batch write has ids of its own, and a worker may see very many
PAUSE_S = 0.1
DELIVERY_MS_MAX = 120_000
NOT_ACCEPTED_PAUSE_S = 1.0  # whoever counts failed logins shuts users out
MARKERS_PAUSE_S = 0.005  # the markers of a transaction that has just ended take a moment
DEFAULT_PORT = 9092

# What a broker says that starts, moves its leadership or waits for a copy.
PASSING = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NETWORK_EXCEPTION, ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR,
}  # fmt: skip
SOON_OVER = {ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.UNSTABLE_OFFSET_COMMIT}


class BrokerRefused(Exception):
    """An error code in an answer."""

    def __init__(self, code: int, told: str | None = None) -> None:
        self.code = ErrorCode(code)
        super().__init__(told or self.code.message or self.code.name)


def check(code: int, told: str | None = None) -> None:
    if code != ErrorCode.NONE:
        raise BrokerRefused(code, told)


class PlainBrokers:
    """One worker's view of a cluster; what is found wrong is forgotten and looked up again."""

    def __init__(self, settings: ClientSettings) -> None:
        given = dict(settings)
        self._settings = settings
        self.servers = given.get("bootstrap.servers", "")
        self.client_id = given.get("client.id", CLIENT_ID)
        self._addresses: dict[int, Address] = {}
        self._connections: dict[tuple[Address, bool], BrokerConnection] = {}
        self._leaders: dict[str, dict[int, int]] = {}
        self._coordinators: dict[tuple[int, str], Address] = {}
        self._batch_bytes: dict[str, int] = {}
        self._delivery_s_max = int(given.get("delivery.timeout.ms", DELIVERY_MS_MAX)) / 1000
        self._was_reached = False

    @property
    def patience_s(self) -> float:
        """A cluster that was there is waited for as long as records are; an address where nobody was, not as long."""
        return self._delivery_s_max if self._was_reached else ANSWER_S_MAX

    def connection(self, address: Address, *, is_for_records: bool = False) -> BrokerConnection:
        """Records have connections of their own: their answers are taken later than those to questions."""
        key = address, is_for_records
        if key not in self._connections:
            self._connections[key] = self.new_connection(address)
            self._was_reached = True
        return self._connections[key]

    def new_connection(self, address: Address) -> BrokerConnection:
        """Of whoever asks; nobody else uses it."""
        return BrokerConnection(
            *address, client_id=self.client_id, timeout_s=ANSWER_S_MAX, security=security_of(self._settings)
        )

    def forget(self) -> None:
        """After something went wrong: every connection and everything that was learnt."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
        self._leaders.clear()
        self._coordinators.clear()
        self._batch_bytes.clear()

    def look_again(self) -> None:
        """Topics may have got partitions since the last task."""
        self._leaders.clear()

    def partition_count(self, topic: str) -> int:
        return len(self._leaders_of(topic))

    def batch_bytes_max(self, topic: str) -> int | None:
        """How large a batch the topic takes; None where that can't be learnt."""
        if topic not in self._batch_bytes:
            wanted = DescribeConfigsResource(TOPIC_RESOURCE, topic, [BATCH_BYTES_CONFIG])
            request = DescribeConfigsRequest(resources=[wanted])
            ask = partial(self._call_anywhere, request, DESCRIBE_CONFIGS_VERSION, DescribeConfigsResponse)
            found = [each for result in self.patiently(ask).results for each in result.configs]
            value = next((each.value for each in found if each.name == BATCH_BYTES_CONFIG), None)
            self._batch_bytes[topic] = int(value) if value is not None else 0
        return self._batch_bytes[topic] or None

    def leader(self, place: TopicPartition) -> Address:
        leaders = self._leaders_of(place.topic)
        if place.partition not in leaders:
            raise NoAnswer(f"there is no {place} at {self.servers}: the topic has {len(leaders)} partitions")
        if leaders[place.partition] not in self._addresses:
            # Its broker was gone when another topic was asked about.
            del self._leaders[place.topic]
            return self.leader(place)
        return self._addresses[leaders[place.partition]]

    def ask_coordinator(
        self,
        kind: int,
        key: str,
        request: Message,
        version: int,
        answer: type[Answer],
        *,
        codes: Callable[[Answer], Iterable[int]],
    ) -> Answer:
        """Until it answers without an error that passes; `codes` are the error codes of an answer."""

        def ask() -> Answer:
            found = self.connection(self._coordinator(kind, key)).call(request, version, answer)
            for code in codes(found):
                check(code)
            return found

        return self.patiently(ask)

    def patiently(self, ask: Callable[[], Answer]) -> Answer:
        deadline_s = time.monotonic() + self.patience_s
        while True:
            try:
                return ask()
            except (OSError, ProtocolViolation) as wrong:
                self.forget()
                is_accepted = not isinstance(wrong, NotAccepted)
                if not is_accepted and not self._was_reached:
                    raise NoAnswer(f"{self.servers}: {wrong}") from None
                # Certificates and passwords may be about to change, of a cluster that took the old ones.
                problem, pause_s = str(wrong), PAUSE_S if is_accepted else NOT_ACCEPTED_PAUSE_S
            except BrokerRefused as refused:
                if refused.code not in PASSING | SOON_OVER:
                    raise
                problem, pause_s = str(refused), MARKERS_PAUSE_S
                if refused.code in PASSING:
                    self.forget()
                    pause_s = PAUSE_S
            if time.monotonic() > deadline_s:
                raise NoAnswer(f"no answer from {self.servers} for {self.patience_s:.0f} s: {problem}")
            time.sleep(pause_s)

    def anywhere(self) -> BrokerConnection:
        """A connection to whichever broker answers first."""
        for (_, is_for_records), connection in self._connections.items():
            if not is_for_records:
                return connection
        problem: OSError | None = None
        for address in [*addresses_of(self.servers), *self._addresses.values()]:
            try:
                return self.connection(address)
            except OSError as wrong:
                problem = wrong
        raise problem or OSError(f"no broker is named by {self.servers!r}")

    def _call_anywhere(self, request: Message, version: int, answer: type[Answer]) -> Answer:
        return self.anywhere().call(request, version, answer)

    def _leaders_of(self, topic: str) -> dict[int, int]:
        if topic not in self._leaders:
            try:
                self.patiently(lambda: self._learn(topic))
            except (BrokerRefused, NoAnswer) as wrong:
                raise NoAnswer(f"topic {topic!r} at {self.servers}: {wrong}") from None
        return self._leaders[topic]

    def _learn(self, topic: str) -> MetadataResponse:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
        found = self.anywhere().call(request, METADATA_VERSION, MetadataResponse)
        addresses = {broker.node_id: (broker.host, broker.port) for broker in found.brokers}
        for told in found.topics:
            check(told.error_code)
            for partition in told.partitions:
                if partition.leader_id not in addresses:
                    check(ErrorCode.LEADER_NOT_AVAILABLE)
            self._leaders[topic] = {partition.partition_index: partition.leader_id for partition in told.partitions}
        self._addresses = addresses
        return found

    def _coordinator(self, kind: int, key: str) -> Address:
        if (kind, key) not in self._coordinators:
            request = FindCoordinatorRequest(key=key, key_type=kind)
            found = self.anywhere().call(request, FIND_COORDINATOR_VERSION, FindCoordinatorResponse)
            check(found.error_code, found.error_message)
            while len(self._coordinators) >= COORDINATORS_MAX:
                del self._coordinators[next(iter(self._coordinators))]
            self._coordinators[kind, key] = (found.host, found.port)
        return self._coordinators[kind, key]


@lru_cache(maxsize=CLUSTERS_MAX)
def brokers_of(settings: ClientSettings) -> PlainBrokers:
    """Kept for the life of a Python worker."""
    return PlainBrokers(settings)


def addresses_of(servers: str) -> list[Address]:
    """`bootstrap.servers` as librdkafka reads it: the port may be missing, a protocol may stand before."""
    found = []
    for server in filter(None, (each.strip() for each in servers.split(","))):
        host, colon, port = server.rpartition("://")[2].rpartition(":")
        if not colon or not port.isdigit():
            host, port = server.rpartition("://")[2], str(DEFAULT_PORT)
        found.append((host.strip("[]"), int(port)))
    return found
