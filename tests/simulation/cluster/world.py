"""A whole cluster from one seed: brokers, disks, the network, the metadata store, clients, and what befalls them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

from moldau.controller.image import ClusterImage, PartitionImage
from moldau.controller.machine import apply
from moldau.controller.partitions.reassignment import is_reassigned
from moldau.controller.records import decode_records
from moldau.controller.topics import NewTopic, decide_create_topics
from moldau.core.config.broker import BrokerConfig
from moldau.core.errors import ApiError
from moldau.core.ids import NO_LEADER, TopicId
from moldau.replication.partition import Partition
from tests.simulation.cluster.clients import ALL, LEADER, Consumer, Producer
from tests.simulation.cluster.disk import Disk
from tests.simulation.cluster.faults import Faults
from tests.simulation.cluster.history import History, stored
from tests.simulation.cluster.network import Network
from tests.simulation.cluster.node import Node
from tests.simulation.cluster.process import ClusterLoop
from tests.simulation.cluster.store import SESSION_S, Ensemble

TOPIC = "orders"
TOPIC_ID = TopicId(bytes(range(16)))
REPLICAS = 3
EPOCH_MS = 1_700_000_000_000
HEAL_S_MAX = 90.0


class Violation(AssertionError):
    """A promise was broken."""


class Machine:
    """What outlives a broker's process."""

    def __init__(self, broker_id: int, disk: Disk) -> None:
        self.broker_id = broker_id
        self.disk = disk
        self.node: Node | None = None
        self.life = 0
        self.boots = 0
        self.clock_shift_ms = 0
        self.lost_power = self.lost_disk = False
        """Since it was in sync: nobody relies on its logs, whether they lack records or not."""


class World:
    topic = TOPIC

    def __init__(self, seed: int, folder: Path) -> None:
        random = self.random = Random(seed)
        self.loop = ClusterLoop(random)
        self.violations: list[str] = []
        self.is_calm = False
        self.brokers = [*range(1, 1 + random.choice([3, 3, 4, 5]))]
        self.partitions = random.choice([1, 2, 3])
        self.syncs_each = random.random() < 0.2
        """Whether each acknowledgement waits for fsync, so that any loss of power may happen at any time."""
        self._outside = copy_context()  # of all processes
        self.history = History(self.violate, syncs_each=self.syncs_each)
        loss, slow = random.choice([0.0, 0.01, 0.05]), random.choice([0, 0.02])
        self.network = Network(random, self._outside, loss=loss, slow=slow)
        self.network.server_of = self._server_of
        self.image = ClusterImage()
        self.ensemble = Ensemble(self.network, dead_s=random.choice([0.2, SESSION_S]), on_entry=self._on_entry)
        self.machines = {each: Machine(each, Disk(folder / str(each), random)) for each in self.brokers}
        self.faults = Faults(self)
        self.befall: Callable[[], Awaitable[None]] = self.faults.run
        self.producers: list[Producer] = []
        self.consumers: list[Consumer] = []
        self.steps: list[str] = []
        self._config = self._settings()
        self._tasks: list[asyncio.Task[Any]] = []
        self._verified: dict[Partition, int] = {}

    def _settings(self) -> dict[str, str]:
        random = self.random
        return {
            "min.insync.replicas": "2",
            "broker.session.timeout.ms": str(int(SESSION_S * 1000)),
            "replica.lag.time.max.ms": str(random.choice([1_000, 3_000])),
            "replica.fetch.wait.max.ms": str(random.choice([300, 1_000])),
            "replica.fetch.backoff.ms": str(random.choice([50, 400])),
            "replica.fetch.max.bytes": str(random.choice([300, 100_000])),
            "replica.socket.timeout.ms": "2000",
            "controller.socket.timeout.ms": "2000",
            "num.replica.fetchers": str(random.choice([1, 2])),
            "replica.high.watermark.checkpoint.interval.ms": "1000",
            "log.flush.offset.checkpoint.interval.ms": "2000",
            "leader.imbalance.check.interval.seconds": str(random.choice([3, 300])),
        }

    def tell(self, what: str) -> None:
        self.steps.append(f"{self.loop.time():.3f} {what}")
        self.history.note(what)

    def violate(self, what: str) -> None:
        self.violations.append(f"at {self.loop.time():.3f} s: {what}")
        self.loop.stop()

    def now_ms(self, broker_id: int) -> int:
        return EPOCH_MS + self.machines[broker_id].clock_shift_ms + int(self.loop.time() * 1000)

    def _server_of(self, broker_id: int) -> Node | None:
        machine = self.machines.get(broker_id)
        node = None if machine is None else machine.node
        return node if node is not None and node.is_listening else None

    def nodes(self) -> list[Node]:
        return [node for each in self.machines.values() if (node := each.node) is not None]

    def states(self) -> tuple[PartitionImage, ...]:
        topic = self.image.topics.get(TOPIC)
        return () if topic is None else topic.partitions

    def _on_entry(self, payload: bytes) -> None:
        self.image = apply(self.image, decode_records(payload))
        self.history.note(self.states())
        self.history.on_image(self.image)

    def start(self, machine: Machine) -> None:
        if machine.node is None:
            machine.life += 1
            config = BrokerConfig.of({**self._config, "node.id": str(machine.broker_id)})
            boot_id = f"{machine.broker_id} {machine.boots}".encode()
            machine.node = Node(self, machine.broker_id, machine.disk.path, config=config, boot_id=boot_id)
            self.tell(f"broker {machine.broker_id} starts")
            machine.node.start()

    def kill(self, machine: Machine, *, power_is_lost: bool = False, disk_is_lost: bool = False) -> None:
        if machine.node is not None:
            machine.node.is_listening = False
            machine.node.end()
        if disk_is_lost:
            machine.disk.lose()
        elif machine.node is not None or power_is_lost:
            machine.disk.outlive(power_is_lost=power_is_lost)
        machine.boots += power_is_lost
        machine.node = None

    def has_ended(self, node: Node, *, is_clean: bool) -> None:
        """A process ended by itself; whoever runs it starts it again."""
        machine = self.machines[node.broker_id]
        if machine.node is node:
            self.tell(f"broker {node.broker_id} ended, {is_clean=}")
            self.loop.call_soon(self._replace, machine, node, context=self._outside)

    def _replace(self, machine: Machine, node: Node) -> None:
        if machine.node is node:
            self.kill(machine)
            self.loop.call_later(self.random.choice([0.1, 1.0]), self.start, machine)

    def on_high_watermark(self, partition: Partition) -> None:
        start = min(self._verified.get(partition, 0), partition.high_watermark)
        if partition.high_watermark > start:
            self.history.on_committed(partition.broker_id, partition, start)
        self._verified[partition] = partition.high_watermark

    def on_leading(self, partition: Partition) -> None:
        self.history.on_leading(partition.broker_id, self.machines[partition.broker_id].life, partition)

    def look_after_the_damaged(self) -> None:
        """A broker that lost records has all of them again when it is in sync, and was taken in as what it is."""
        for machine in self.machines.values():
            node = machine.node
            if node is not None and node.membership is not None and node.membership.is_followed:
                own = [each for each in self.states() if machine.broker_id in each.replicas]
                if all(machine.broker_id in each.isr for each in own):
                    machine.lost_power = machine.lost_disk = False

    def run(self) -> None:
        """Raises Violation."""
        asyncio.set_event_loop(None)
        self.loop.set_exception_handler(self._on_exception)
        complaints = _Complaints(self.violate)
        logging.getLogger("moldau").addHandler(complaints)
        try:
            main = self.loop.create_task(self._main())
            main.add_done_callback(lambda _: self.loop.stop())
            self.loop.run_forever()
            if not self.violations and not main.cancelled():
                main.result()
        finally:
            logging.getLogger("moldau").removeHandler(complaints)
            self._clear_up()
        if self.violations:
            raise Violation(self.violations[0])

    def _clear_up(self) -> None:
        for machine in self.machines.values():
            if machine.node is not None:
                machine.node.is_dead = True
                self.loop.call_soon(machine.node.go_on)  # a process that is suspended unwinds, too
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.violations, found = [], self.violations
        self.loop.call_later(0.1, self.loop.stop)
        self.loop.run_forever()
        self.loop.close()
        self.violations = found

    def _on_exception(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.violate(f"{context.get('message')}: {context.get('exception')!r}")

    async def _main(self) -> None:
        self._spawn(self.ensemble.keep_sessions())
        await self._begin()
        await self.befall()
        self.tell("all faults cease")
        self.is_calm = self.network.is_calm = True
        await self._until("everything heals", self._why_not_healed)
        for consumer in self.consumers:
            await self._until("all was read", lambda consumer=consumer: self._left_to_read(consumer))  # type: ignore[misc]
        self._check_end()

    async def _begin(self) -> None:
        self.network.is_calm = True
        for machine in self.machines.values():
            self.start(machine)
        await self._until("all brokers are taken in", self._who_is_missing)
        await self._create_topic()
        await self._until("the topic is led", lambda: None if self.states() else "no topic")
        self.network.is_calm = False
        for number in range(self.random.randint(2, 4)):
            is_idempotent = number == 0 or self.random.random() < 0.6
            acks = ALL if is_idempotent or self.random.random() < 0.7 else LEADER
            index, count = number % self.partitions, self.random.randint(10, 30)
            producer = Producer(self, number, index, is_idempotent=is_idempotent, acks=acks, batches=count)
            self.producers.append(producer)
            self._spawn(producer.run())
        for index in range(self.partitions):
            self.consumers.append(Consumer(self, index))
            self._spawn(self.consumers[-1].run())

    async def _create_topic(self) -> None:
        random = self.random
        configs = {"internal.segment.bytes": str(random.choice([600, 100_000])), "index.interval.bytes": "200"}
        if self.syncs_each:
            configs["flush.messages"] = "1"
        assignments = [(index, random.sample(self.brokers, REPLICAS)) for index in range(self.partitions)]
        topic = NewTopic(TOPIC, assignments=assignments, configs=[*configs.items()])
        while not self.states():
            await self.at_controller(
                lambda image, config: decide_create_topics(image, [topic], config=config, new_id=lambda: TOPIC_ID)
            )

    async def at_controller(self, decide: Callable[[ClusterImage, BrokerConfig], Any]) -> None:
        """What an operator wants, asked of the broker that controls; nothing if there is none."""
        for node in self.nodes():
            services = node.services
            if services is not None and services.controller.is_active and not node.is_stopped:
                done: asyncio.Future[Any] = self.loop.create_future()

                async def write(services: Any = services, done: asyncio.Future[Any] = done) -> None:
                    try:
                        await services.controller.write(lambda image: decide(image, services.config))
                    except ApiError as refused:
                        self.tell(f"refused: {refused.code.name}")
                    if not done.done():
                        done.set_result(None)

                node.spawn(write())
                await asyncio.wait([done], timeout=3)
                return
        await asyncio.sleep(0.2)

    async def _until(self, what: str, why_not: Callable[[], str | None]) -> None:
        end_s = self.loop.time() + HEAL_S_MAX
        while (reason := why_not()) is not None:
            await asyncio.sleep(0.1)
            self.look_after_the_damaged()
            if self.loop.time() > end_s:
                self.violate(f"not after {HEAL_S_MAX:.0f} s: {what}: {reason}")
                await asyncio.sleep(1)

    def _who_is_missing(self) -> str | None:
        active = {each.id for each in self.image.active_brokers()}
        followed = [each for each in self.nodes() if each.membership is not None and each.membership.is_followed]
        taken = [each.broker_id for each in followed if each.broker_id in active]
        return None if taken == self.brokers else f"{taken} are in, of {self.brokers}"

    def _why_not_healed(self) -> str | None:
        if missing := self._who_is_missing():
            return missing
        for index, state in enumerate(self.states()):
            if state.leader == NO_LEADER or set(state.isr) != set(state.replicas) or is_reassigned(state):
                return f"{index} is {state}"
        unsent = [each.number for each in self.producers if not each.is_done]
        if unsent:
            return f"producers {unsent} wait"
        return next(filter(None, (self._lag(index, state) for index, state in enumerate(self.states()))), None)

    def _lag(self, index: int, state: PartitionImage) -> str | None:
        leader = self._partition(state.leader, index)
        for broker_id in state.replicas:
            partition = self._partition(broker_id, index)
            if partition is None or leader is None or not leader.is_leader:
                return f"{index} is not on {broker_id}"
            ends = {leader.log.end_offset, leader.high_watermark, partition.log.end_offset, partition.high_watermark}
            if len(ends) > 1:
                return f"{index} has other ends on {broker_id} than on its leader: {ends}"
        return None

    def _partition(self, broker_id: int, index: int) -> Partition | None:
        node = self.machines[broker_id].node
        return None if node is None or node.services is None else node.services.partitions.get(TOPIC, index)

    def _left_to_read(self, consumer: Consumer) -> str | None:
        end = self.history.ends.get(consumer.index, 0)
        return None if consumer.position >= end else f"{consumer.index} was read to {consumer.position} of {end}"

    def _check_end(self) -> None:
        for index, state in enumerate(self.states()):
            contents = {}
            for broker_id in state.replicas:
                partition = self._partition(broker_id, index)
                assert partition is not None, "it was there a moment ago"
                log = partition.log
                contents[broker_id] = crc32(b"".join(bytes(batch) for _, _, batch in stored(log, 0, log.end_offset)))
                once = [
                    value
                    for each in self.producers
                    if each.index == index and each.is_idempotent
                    for value in each.acknowledged
                ]
                self.history.check_end(index, log, once)
            if len(set(contents.values())) > 1:
                self.violate(f"replicas of {index} differ: {contents}")

    def _spawn(self, work: Any) -> None:
        task = self.loop.create_task(work)
        task.add_done_callback(self._ended)
        self._tasks.append(task)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self.violate(f"a client failed: {task.exception()!r}")


class _Complaints(logging.Handler):
    """An exception that nobody expected is a fault, wherever it was caught."""

    def __init__(self, violate: Callable[[str], None]) -> None:
        super().__init__(logging.ERROR)
        self._violate = violate

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self._violate(f"a broker said: {record.getMessage()}: {record.exc_info[1]!r}")
