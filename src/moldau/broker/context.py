"""What a handler may use: the services of this broker, and where the request came from."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from moldau.security.principals import ANONYMOUS, Principal

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Sequence, Set
    from concurrent.futures import Executor

    from moldau.broker.authorization import Authorization
    from moldau.broker.delegation_tokens import DelegationTokens
    from moldau.broker.fetching.cold_reads import ColdReads
    from moldau.broker.fetching.fetch_sessions import FetchSessions
    from moldau.broker.metrics.collecting import Writer
    from moldau.broker.metrics.metering import Metering
    from moldau.broker.network.connection_quotas import ConnectionQuotas
    from moldau.broker.network.listener import Listener
    from moldau.broker.peers import Peers
    from moldau.broker.producing.flushing import Flusher
    from moldau.broker.producing.marker_appends import MarkerAppends
    from moldau.broker.producing.remote_admission import RemoteAdmission
    from moldau.broker.quotas.throttling import Throttling
    from moldau.broker.replication import Replication
    from moldau.broker.requests.dispatch import Dispatch
    from moldau.broker.requests.forwarding import Forwarding
    from moldau.broker.telemetry.receiver import TelemetryReceiver
    from moldau.broker.topics.moving import ReplicaMoves
    from moldau.broker.topics.partitions import Partitions
    from moldau.broker.topics.reconciliation import Reconciliation
    from moldau.controller.image import BrokerImage, ClusterImage
    from moldau.controller.producer_ids import ProducerIds
    from moldau.controller.runtime import Controller
    from moldau.coordinator.long_work import LongWork
    from moldau.core.clock import Clock
    from moldau.core.config.broker import BrokerConfig
    from moldau.groups.coordinator import GroupCoordinator
    from moldau.log.directories.log_directories import LogDirectories
    from moldau.security.acls.vocabulary import AclOperation, ResourceType
    from moldau.transactions.coordinator import TransactionCoordinator
    from moldau.wire.frame import RequestHeader
    from moldau.wire.messages.api_versions import ApiVersion

NONE: frozenset[str] = frozenset()
UNKNOWN = "unknown"  # Kafka's word for the software of a client that did not say
NO_PORT = 0  # of a client whose request another broker sent on: an envelope tells only its address


class Certificates(Protocol):
    """What listeners show to their clients, by a configuration that may change."""

    async def check(self, config: BrokerConfig) -> None:
        """ConfigError if this broker can't go over to those of that configuration."""


@dataclass(slots=True, kw_only=True)
class Services:
    """Everything that lives as long as the broker does."""

    broker_id: int
    api_versions: list[ApiVersion]
    config: BrokerConfig
    clock: Clock
    controller: Controller
    partitions: Partitions
    replication: Replication
    reconciliation: Reconciliation
    directories: LogDirectories
    producer_ids: ProducerIds
    fetch_sessions: FetchSessions
    flusher: Flusher
    long_work: LongWork
    cold_reads: ColdReads
    executor: Executor
    """Threads that wait for the disk."""
    computing: Executor
    """One thread for what takes long to compute: more would only take the interpreter from the loop."""
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    markers: MarkerAppends
    peers: Peers | None = None
    forwarding: Forwarding | None = None
    """What a broker needs that may not be the controller; None where it is the only one for sure, as in tests."""
    remote_admission: RemoteAdmission | None = None
    itself: BrokerImage | None = None
    """This broker as it registers; None where nobody starts it, as in tests."""
    image_without_itself: ClusterImage | None = None
    """What clients are shown while others may lead what this broker led, and it can't learn who."""
    brokers_expected: int = 1
    """How many brokers the cluster has when all of them have started, as far as that is known."""
    moves: ReplicaMoves | None = None
    """Made when the first replica is to move to another log directory."""
    authorization: Authorization | None = None
    """None where every client may do everything."""
    delegation_tokens: DelegationTokens | None = None
    """None where they are not enabled."""
    quotas: Throttling | None = None
    """None where no client has a quota."""
    certificates: Certificates | None = None
    """Those of the listeners with TLS; None where there is none."""
    metering: Metering | None = None
    """Counts requests; None where metrics are off."""
    metric_writers: list[Writer] | None = None
    """Whoever has metrics to tell adds what writes them; None where metrics are off."""
    telemetry: TelemetryReceiver | None = None
    """Takes clients' own metrics; None where metrics are off."""
    listeners: Sequence[Listener] = ()
    """Those that answer clients."""
    connections: ConnectionQuotas | None = None
    """Counts the connections of all listeners; None until they open."""
    dispatch: Dispatch | None = None
    """Set when requests are answered: one of them may come in another."""

    @property
    def image(self) -> ClusterImage:
        """The cluster as clients are to see it."""
        return self.image_without_itself or self.controller.image


class ClientInformation:
    """What a client said of itself by ApiVersions, and whether it is still connected."""

    __slots__ = ("is_connected", "software_name", "software_version")

    def __init__(self) -> None:
        self.software_name = self.software_version = UNKNOWN
        self.is_connected = True


@dataclass(slots=True, frozen=True)
class Peer:
    """The other end of a connection, and the listener it came in by."""

    listener_name: str
    host: str
    port: int
    principal: Principal = ANONYMOUS
    client: ClientInformation = field(default_factory=ClientInformation, compare=False, repr=False)
    """The same one before and after a login."""

    @property
    def is_forwarded(self) -> bool:
        """The client is connected to another broker, which sent its request on."""
        return self.port == NO_PORT

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


T = TypeVar("T")


class Context:
    """One request's surroundings. Not a dataclass: one is made per request, on the data path."""

    __slots__ = ("header", "peer", "services", "version")

    def __init__(self, services: Services, header: RequestHeader, peer: Peer) -> None:
        self.services = services
        self.header = header
        self.peer = peer
        self.version = header.api_version

    @property
    def principal(self) -> Principal:
        return self.peer.principal

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Future[T]:
        """Go on in a task of its own, whose time is that of the request where clients have quotas of time."""
        return asyncio.ensure_future(work)

    async def compute(self, work: Callable[[], T], executor: Executor) -> T:
        """What a thread is to do, whose processor time is that of the request where clients have quotas of time."""
        return await asyncio.get_running_loop().run_in_executor(executor, work)

    def exempt(self) -> None:
        """The time of this request is no client's: a broker asks that proved to be one, or nobody has to prove it."""

    def may(self, operation: AclOperation, resource_type: ResourceType, name: str, *, is_audited: bool = True) -> bool:
        """Whether whoever asks may do this; a denial is a line in the audit log, unless nobody was refused by it."""
        authorization = self.services.authorization
        return authorization is None or authorization.may(self, operation, resource_type, name, is_audited=is_audited)

    def denied(
        self, operation: AclOperation, resource_type: ResourceType, names: Iterable[str], *, is_audited: bool = True
    ) -> Set[str]:
        """Those of the names with whose resources the client may not do this; each denial is told once."""
        authorization = self.services.authorization
        if authorization is None:
            return NONE
        return authorization.denied(self, operation, resource_type, names, is_audited=is_audited)
