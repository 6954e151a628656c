"""A cluster that is asked by our own messages: any broker, a certain one, the controller, a coordinator, leaders.

One connection to each broker that was asked, kept until the end. What passes by itself (a coordinator that moves, a
leader that is elected) is asked again until the time is up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeAlias, TypeVar

from moldau.client.addresses import addresses_of
from moldau.client.connection import Connection, LoginRefused, NotListening
from moldau.core.errors import ErrorCode, ProtocolViolation
from moldau.core.ids import TopicPartition
from moldau.wire.api import ApiKey
from moldau.wire.messages import DescribeClusterRequest, DescribeClusterResponse, MetadataRequest, MetadataResponse
from moldau.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from moldau.wire.messages.metadata import MetadataRequestTopic
from moldau.wire.schema import Message

if TYPE_CHECKING:
    from moldau.client.security import ConnectionSecurity

R = TypeVar("R", bound=Message)
T = TypeVar("T")
Led: TypeAlias = dict[int, list[TopicPartition]]
"""The places that each broker leads."""
Unled: TypeAlias = dict[TopicPartition, int]
"""An error code for each place that nobody leads."""
Codes = Callable[[R], Iterable[int]]

PAUSE_S = 0.1
ONE_COORDINATOR_VERSION = 3  # of FindCoordinator; later ones ask about many
PASSING = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_CONTROLLER, ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.BROKER_NOT_AVAILABLE,
}  # fmt: skip


class CoordinatorKind(IntEnum):
    GROUP = 0
    TRANSACTION = 1


class EndpointKind(IntEnum):
    """Who is asked; the numbers are the protocol's."""

    BROKERS = 1
    CONTROLLERS = 2


class NoAnswer(Exception):
    """Nobody answered in time, or not in Kafka's protocol; the text says where and why."""


class NobodyListens(NoAnswer):
    def __init__(self, servers: str) -> None:
        super().__init__(f"no broker answers at {servers}")
        self.servers = servers


class Silence(NoAnswer):
    def __init__(self, servers: str, timeout_s: float, question: str) -> None:
        super().__init__(f"something listens at {servers} but gave no answer in {timeout_s:g} s; {question}")


class NotLetIn(NoAnswer):
    """The cluster does not take this login."""


class Refused(Exception):
    """An error code in an answer, with the broker's own words where it has some."""

    def __init__(self, code: int, told: str | None = None) -> None:
        super().__init__(told or words_of(code))
        self.code = code


def words_of(code: int) -> str:
    try:
        return ErrorCode(code).message
    except ValueError:
        return f"error {code}"


def check(code: int, told: str | None = None) -> None:
    if code != ErrorCode.NONE:
        raise Refused(code, told)


@dataclass(frozen=True, slots=True)
class Node:
    id: int
    host: str
    port: int
    rack: str | None = None


class Cluster:
    """Whoever opens it closes it; the first question connects."""

    def __init__(
        self,
        servers: str,
        *,
        client_id: str,
        timeout_s: float,
        security: ConnectionSecurity | None = None,
        kind: EndpointKind = EndpointKind.BROKERS,
    ) -> None:
        self.servers = servers
        self.timeout_s = timeout_s
        self.kind = kind
        self._client_id = client_id
        self._security = security
        self._first: Connection | None = None
        self._connections: dict[tuple[str, int], Connection] = {}
        self._nodes: dict[int, Node] = {}
        self._controller_id = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, wrong: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        for connection in [*self._connections.values()]:
            connection.close()
        self._connections.clear()
        self._first = None

    def versions(self) -> Mapping[int, tuple[int, int]]:
        """Of each API, as the broker that is asked first answers it."""
        return self._on(self._anybody(), lambda connection: connection.versions)

    def versions_of(self, broker_id: int) -> Mapping[int, tuple[int, int]]:
        return self._on(self._broker(broker_id), lambda connection: connection.versions)

    def ask(self, request: Message, response: type[R]) -> R:
        """Whichever broker answers first; it forwards what only the controller can answer."""
        return self._ask(self._anybody(), request, response)

    def ask_broker(self, broker_id: int, request: Message, response: type[R], *, version_max: int | None = None) -> R:
        """`version_max` is for requests whose later versions say things in another way, such as topics by their ids."""
        return self._ask(self._broker(broker_id), request, response, version_max=version_max)

    def ask_controller(self, request: Message, response: type[R], *, codes: Codes[R]) -> R:
        """The controller by name: brokers of old forward nothing."""

        def ask() -> R:
            self._learn()
            known = self._controller_id in self._nodes
            return self._ask(self._broker(self._controller_id) if known else self._anybody(), request, response)

        return self.patiently(ask, codes)

    def ask_coordinator(
        self, kind: CoordinatorKind, key: str, request: Message, response: type[R], *, codes: Codes[R]
    ) -> R:
        """`codes` are the error codes of an answer; those that pass by themselves are waited for."""
        return self.patiently(lambda: self.ask_broker(self.coordinator(kind, key), request, response), codes)

    def coordinator(self, kind: CoordinatorKind, key: str) -> int:
        """The id of the broker that coordinates this group or transactional id."""

        request = FindCoordinatorRequest(key=key, key_type=kind)
        found = self.patiently(
            lambda: self._ask(self._anybody(), request, FindCoordinatorResponse, version_max=ONE_COORDINATOR_VERSION),
            lambda answer: [answer.error_code],
        )
        check(found.error_code, found.error_message)
        self._nodes[found.node_id] = Node(found.node_id, found.host, found.port)
        return found.node_id

    def coordinators(self, kind: CoordinatorKind, keys: Iterable[str]) -> tuple[dict[int, list[str]], dict[str, int]]:
        """The keys that each broker coordinates at this moment, and an error code for each that nobody does."""
        wanted = list(dict.fromkeys(keys))
        found: dict[int, list[str]] = {}
        refused: dict[str, int] = {}
        for each in self._found(kind, wanted):
            if each.error_code != ErrorCode.NONE:
                refused[each.key] = each.error_code
            else:
                self._nodes[each.node_id] = Node(each.node_id, each.host, each.port)
                found.setdefault(each.node_id, []).append(each.key)
        return found, refused

    def _found(self, kind: CoordinatorKind, keys: list[str]) -> list[Coordinator]:
        """Brokers of old are asked about one after another."""
        newest = self.versions().get(ApiKey.FIND_COORDINATOR, (0, 0))[1]
        if newest > ONE_COORDINATOR_VERSION:
            many = FindCoordinatorRequest(key_type=kind, coordinator_keys=keys)
            return self.ask(many, FindCoordinatorResponse).coordinators if keys else []
        answers = [
            (key, self.ask(FindCoordinatorRequest(key=key, key_type=kind), FindCoordinatorResponse)) for key in keys
        ]
        return [Coordinator(key, each.node_id, each.host, each.port, each.error_code) for key, each in answers]

    def metadata(self, topics: Iterable[str] | None = None) -> MetadataResponse:
        """Of these topics, or of all; none is created by asking."""
        wanted = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        found = self.ask(MetadataRequest(topics=wanted, allow_auto_topic_creation=False), MetadataResponse)
        self._nodes = {each.node_id: Node(each.node_id, each.host, each.port, each.rack) for each in found.brokers}
        self._controller_id = found.controller_id
        return found

    def nodes(self) -> dict[int, Node]:
        """The brokers of the cluster by their ids, asked for anew."""
        self._learn()
        return dict(sorted(self._nodes.items()))

    def node(self, broker_id: int) -> Node:
        """Where a broker is that an answer has named."""
        return self._nodes[broker_id]

    def new_connection(self, broker_id: int) -> Connection:
        """Another one, for whoever asks this broker in a thread of his own, and closes it."""
        node = self._nodes.get(broker_id) or self.nodes().get(broker_id)
        if node is None:
            raise NoAnswer(f"there is no broker {broker_id} at {self.servers}; it has {sorted(self._nodes)}")
        try:
            return self._new_connection(node.host, node.port)
        except (OSError, ProtocolViolation) as wrong:
            raise _unreached(broker_id, node, wrong) from None

    def led(self, places: Iterable[TopicPartition]) -> tuple[Led, Unled]:
        wanted = list(dict.fromkeys(places))
        found = self.metadata(dict.fromkeys(place.topic for place in wanted))
        codes = {topic.name: topic.error_code for topic in found.topics}
        leaders = {
            TopicPartition(topic.name or "", each.partition_index): each.leader_id
            for topic in found.topics
            for each in topic.partitions
        }
        led: Led = {}
        unled: Unled = {}
        for place in wanted:
            leader = leaders.get(place)
            if leader is None:
                unled[place] = codes.get(place.topic) or int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            elif leader not in self._nodes:
                unled[place] = int(ErrorCode.LEADER_NOT_AVAILABLE)
            else:
                led.setdefault(leader, []).append(place)
        return led, unled

    def patiently(self, ask: Callable[[], R], codes: Codes[R]) -> R:
        """Until no code of the answer is one that passes, or time is up: the last answer counts as it is."""
        deadline_s = time.monotonic() + self.timeout_s
        while True:
            found = ask()
            if not PASSING.intersection(codes(found)) or time.monotonic() >= deadline_s:
                return found
            time.sleep(PAUSE_S)

    def _learn(self) -> None:
        if self.kind == EndpointKind.BROKERS:
            self.metadata([])
            return
        found = self.ask(DescribeClusterRequest(endpoint_type=self.kind), DescribeClusterResponse)
        check(found.error_code, found.error_message)
        self._nodes = {each.broker_id: Node(each.broker_id, each.host, each.port, each.rack) for each in found.brokers}
        self._controller_id = found.controller_id

    def _broker(self, broker_id: int) -> Connection:
        node = self._nodes.get(broker_id) or self.nodes().get(broker_id)
        if node is None:
            raise NoAnswer(f"there is no broker {broker_id} at {self.servers}; it has {sorted(self._nodes)}")
        try:
            return self._connection(node.host, node.port)
        except OSError as wrong:
            raise _unreached(broker_id, node, wrong) from None

    def _anybody(self) -> Connection:
        if self._first is None:
            self._first = self._opened()
        return self._first

    def _opened(self) -> Connection:
        """The first one that answers: brokers that hang take connections all the same."""
        failures: list[NoAnswer] = []
        for host, port in addresses_of(self.servers):
            try:
                found = self._connection(host, port)
                self._on(found, lambda connection: connection.versions)
                return found
            except NotListening:
                continue
            except NoAnswer as wrong:
                failures.append(wrong)
            except TimeoutError:
                failures.append(Silence(self.servers, self.timeout_s, "does security.protocol fit it?"))
            except LoginRefused as wrong:  # others would count it as one more attempt
                raise NotLetIn(f"the broker at {self.servers}: {_told(wrong)}") from None
            except (OSError, ProtocolViolation) as wrong:
                failures.append(NoAnswer(f"the broker at {self.servers}: {_told(wrong)}"))
        raise failures[0] if failures else NobodyListens(self.servers)

    def _connection(self, host: str, port: int) -> Connection:
        if (host, port) not in self._connections:
            self._connections[host, port] = self._new_connection(host, port)
        return self._connections[host, port]

    def _new_connection(self, host: str, port: int) -> Connection:
        return Connection(host, port, client_id=self._client_id, timeout_s=self.timeout_s, security=self._security)

    def _ask(self, connection: Connection, request: Message, response: type[R], *, version_max: int | None = None) -> R:
        return self._on(connection, lambda found: found.ask(request, response, version_max=version_max))

    def _on(self, connection: Connection, do: Callable[[Connection], T]) -> T:
        try:
            return do(connection)
        except TimeoutError:
            self._forget(connection)
            raise Silence(connection.server, self.timeout_s, "is it a Kafka broker?") from None
        except (OSError, ProtocolViolation) as wrong:
            self._forget(connection)
            # A broker whose listener expects TLS hangs up on who begins without, and says nothing.
            more = ", and does security.protocol fit it" if isinstance(wrong, ConnectionError) else ""
            raise NoAnswer(f"the broker at {connection.server}: {_told(wrong)}; is it a Kafka broker{more}?") from None

    def _forget(self, connection: Connection) -> None:
        connection.close()
        self._connections = {key: each for key, each in self._connections.items() if each is not connection}
        if self._first is connection:
            self._first = None


def _unreached(broker_id: int, node: Node, wrong: Exception) -> NoAnswer:
    kind = NotLetIn if isinstance(wrong, LoginRefused) else NoAnswer
    return kind(f"broker {broker_id} does not answer at {node.host}:{node.port}: {_told(wrong)}")


def _told(wrong: Exception) -> str:
    return getattr(wrong, "strerror", None) or str(wrong)
