"""What a handler may use: the services of this broker, and where the request came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from moldau.broker.fetching.cold_reads import ColdReads
    from moldau.broker.fetching.fetch_sessions import FetchSessions
    from moldau.broker.producing.flushing import Flusher
    from moldau.broker.producing.marker_appends import MarkerAppends
    from moldau.broker.topics.partitions import Partitions
    from moldau.broker.topics.reconciliation import Reconciliation
    from moldau.controller.producer_ids import ProducerIds
    from moldau.controller.runtime import Controller
    from moldau.coordinator.long_work import LongWork
    from moldau.core.clock import Clock
    from moldau.core.config.broker import BrokerConfig
    from moldau.groups.coordinator import GroupCoordinator
    from moldau.log.directories.log_directories import LogDirectories
    from moldau.transactions.coordinator import TransactionCoordinator
    from moldau.wire.frame import RequestHeader
    from moldau.wire.messages.api_versions import ApiVersion


@dataclass(slots=True, kw_only=True)
class Services:
    """Everything that lives as long as the broker does."""

    broker_id: int
    api_versions: list[ApiVersion]
    config: BrokerConfig
    clock: Clock
    controller: Controller
    partitions: Partitions
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


@dataclass(slots=True, frozen=True)
class Peer:
    """The other end of a connection, and the listener it came in by."""

    listener_name: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class Context:
    """One request's surroundings. Not a dataclass: one is made per request, on the data path."""

    __slots__ = ("header", "peer", "services", "version")

    def __init__(self, services: Services, header: RequestHeader, peer: Peer) -> None:
        self.services = services
        self.header = header
        self.peer = peer
        self.version = header.api_version
