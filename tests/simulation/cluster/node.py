"""One process of a simulated broker, put together as `moldau start` does it, without sockets, threads and real time."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol, cast

from moldau.broker.context import Context, Peer, Services
from moldau.broker.fetching.cold_reads import ColdReads
from moldau.broker.fetching.fetch_sessions import FetchSessions
from moldau.broker.handlers import TABLE
from moldau.broker.handlers.between_brokers import BETWEEN_BROKERS
from moldau.broker.housekeeping import Housekeeping
from moldau.broker.producing.flushing import Flusher
from moldau.broker.replication import Replication
from moldau.broker.requests.delayed_response import DelayedResponse, future_of
from moldau.broker.requests.forwarding import Forwarding
from moldau.broker.topics.partitions import Partitions
from moldau.broker.topics.reconciliation import Reconciliation
from moldau.controller.image import BrokerImage, Endpoint
from moldau.controller.members.registration import lost_or_kept
from moldau.controller.runtime import Controller
from moldau.coordinator.long_work import LongWork
from moldau.core.config.broker import BrokerConfig
from moldau.core.config.metadata_store import session_timeout_ms
from moldau.core.errors import ApiError
from moldau.log.directories.log_directories import LogDirectories
from moldau.log.file_range import FileRange
from moldau.node.cluster.membership import Membership
from moldau.node.cluster.reachability import Reachability
from moldau.node.cluster.replication import terms_of
from moldau.node.leadership import lead_again
from moldau.node.storage.adoption import register
from moldau.node.storage.kept_logs import has_whole_logs, lost_logs, note_boot
from moldau.node.storage.opening import open_partitions
from moldau.replication.channel import ChannelError
from moldau.store.store import StoreError
from moldau.wire.frame import RequestHeader
from moldau.wire.messages.fetch import FetchResponse
from moldau.wire.schema import Message
from tests.simulation.cluster.network import Network, Reply, Serve
from tests.simulation.cluster.process import Process
from tests.simulation.cluster.store import Ensemble, SimulatedStore
from tests.simulation.loop import elapsed_ms

CLUSTER_ID = "c2ltdWxhdGVkIGNsdXN0ZX"
PEER = Peer("PLAINTEXT", "127.0.0.1", 1)
HANDLERS = {each.request: each for each in (*TABLE, *BETWEEN_BROKERS)}


class World(Protocol):
    """What a process sees of it."""

    network: Network
    ensemble: Ensemble

    def now_ms(self, broker_id: int) -> int: ...

    def has_ended(self, node: Node, *, is_clean: bool) -> None: ...


class Node(Process):
    def __init__(self, world: World, broker_id: int, folder: Path, *, config: BrokerConfig, boot_id: bytes) -> None:
        super().__init__()
        self.broker_id = broker_id
        self.boot_id = boot_id
        self.is_listening = False
        self.services: Services = cast(Any, None)
        self.membership: Membership = cast(Any, None)
        self._world = world
        self._folder = folder
        self._config = config
        self._housekeeping: Housekeeping | None = None
        self._store = SimulatedStore(world.ensemble, self)

    def start(self) -> None:
        self.spawn(self._run())

    async def _run(self) -> None:
        try:
            await self._start()
        except (StoreError, ApiError):
            self._world.has_ended(self, is_clean=False)

    async def _start(self) -> None:
        directories = LogDirectories.open([self._folder], node_id=self.broker_id, cluster_id=CLUSTER_ID)
        controller = await Controller.open(self._store, self.broker_id, cluster_id=CLUSTER_ID, is_serving=False)
        services = self.services = self._make_services(controller, directories)
        broker = BrokerImage(
            id=self.broker_id,
            endpoints={"PLAINTEXT": Endpoint("simulated", 9092 + self.broker_id)},
            directories={directories.directory_id(path): str(path) for path in directories.paths},
        )
        is_alone = controller.is_active and controller.image.brokers.keys() <= {self.broker_id}
        is_whole = has_whole_logs(directories)
        image = controller.image
        gone = {} if is_alone else lost_logs(image, directories, broker_id=self.broker_id, are_accepted=False)
        lost, kept = lost_or_kept(image, self.broker_id, gone)
        membership = Membership(
            self._store, broker, cluster_id=CLUSTER_ID, has_whole_logs=is_whole, lost=lost, kept=kept
        )
        self.membership = membership
        membership.is_followed = is_alone
        note_boot(directories, are_cut=not (is_whole or is_alone))
        if membership.is_followed:
            await register(services, broker)
            await lead_again(services)
        else:
            controller.take_duties(lambda: self._config)
        await open_partitions(services, self._config, asyncio.Event(), membership)
        services.replication.start()
        self._housekeeping = Housekeeping(services, services.executor)
        self._housekeeping.start()
        self.is_listening = True
        peers = cast(Any, services.peers)
        Reachability(
            controller,
            self._store,
            membership,
            peers,
            broker_id=self.broker_id,
            timeout_ms=session_timeout_ms(self._config),
        ).start()
        await membership.join(services, asyncio.Event())

    def _make_services(self, controller: Controller, directories: LogDirectories) -> Services:
        clock = cast(Any, SimpleNamespace(now_ms=partial(self._world.now_ms, self.broker_id), elapsed_ms=elapsed_ms))
        partitions, long_work, flusher = Partitions(), LongWork(), Flusher(cast(Any, None))
        peers = cast(Any, Peers(self))
        replication = Replication(
            self.broker_id,
            partitions,
            lambda: peers.channels,
            image=lambda: controller.image,
            config=lambda: self._config,
            clock=clock,
            flush=flusher.flush,
            long_work=long_work,
        )
        reconciliation = Reconciliation(
            self.broker_id,
            partitions,
            directories,
            thread=cast(Any, None),
            clock=clock,
            long_work=long_work,
            terms=terms_of(self._config, replication),
        )
        return Services(
            broker_id=self.broker_id,
            api_versions=[],
            config=self._config,
            clock=clock,
            controller=controller,
            partitions=partitions,
            replication=replication,
            reconciliation=reconciliation,
            directories=directories,
            producer_ids=cast(Any, None),
            fetch_sessions=FetchSessions(sessions_max=100, eviction_ms_min=0, seed=self.broker_id),
            flusher=flusher,
            long_work=long_work,
            cold_reads=ColdReads(),
            executor=cast(Any, None),
            computing=cast(Any, None),
            groups=cast(Any, None),
            transactions=cast(Any, None),
            markers=cast(Any, None),
            peers=peers,
            forwarding=Forwarding(self.broker_id, controller, peers),
        )

    def stop(self) -> None:
        """SIGTERM."""
        self.spawn(self._stop())

    async def _stop(self) -> None:
        services = self.services
        if not self.is_listening:
            self._world.has_ended(self, is_clean=False)
            return
        await self.membership.leave(services)
        self.is_listening = False
        try:
            assert self._housekeeping is not None, "it began before anybody was served"
            await self._housekeeping.stop()
            await services.replication.stop()
            await services.reconciliation.stop(services.controller.settled)
            await services.controller.close()
            await self._store.close()
        except (StoreError, ApiError):
            self._world.has_ended(self, is_clean=False)
            return
        services.directories.end()
        self._world.has_ended(self, is_clean=True)

    def receive(self, serve: Serve, reply: Reply) -> None:
        if not self.is_dead:
            self.spawn(self._serve(serve, reply))

    async def _serve(self, serve: Serve, reply: Reply) -> None:
        answer: Any
        try:
            answer = serve(self.services)
            if isinstance(answer, DelayedResponse):
                answer = await future_of(answer)
            elif inspect.isawaitable(answer):
                answer = await answer
            _read_records(answer)
        except OSError as wrong:  # what was to be sent was truncated meanwhile
            answer = ChannelError(str(wrong))
        if not self.is_dead and self.is_listening:
            reply(answer)


def _read_records(answer: Any) -> None:
    """As they are sent: what is in the files by then."""
    if isinstance(answer, FetchResponse):
        for topic in answer.responses:
            for data in topic.partitions:
                if isinstance(data.records, FileRange):
                    data.records = data.records.read() if data.records.size else b""
                if data.records is not None:
                    data.records = memoryview(bytearray(data.records))


def handled(request: Message, version: int, client_id: str = "client") -> Callable[[Services], Any]:
    """A request on its way through the real handler."""
    api = HANDLERS[type(request)]
    header = RequestHeader(api.key, version, 0, client_id)
    return lambda services: api.call(request, Context(services, header, PEER))


class Peers:
    """Channels to the other brokers, over the simulated network."""

    def __init__(self, node: Node) -> None:
        self.channels = self
        self._node = node

    def give_up(self, broker_id: int, reason: str) -> None:
        """Time-outs are short here, and nobody keeps a connection."""

    def to(self, broker_id: int, purpose: str) -> Channel:
        return Channel(self._node, broker_id)


class Channel:
    def __init__(self, node: Node, broker_id: int) -> None:
        self._node = node
        self._broker_id = broker_id

    async def ask(self, request: Message, version: int, *, timeout_ms: int) -> Any:
        network = self._node._world.network
        serve = handled(request, version, f"broker-{self._node.broker_id}")
        return await network.ask(self._node.broker_id, self._broker_id, serve, timeout_s=timeout_ms / 1000)
