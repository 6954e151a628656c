"""What befalls the simulated cluster, and what its operators do meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from moldau.controller.partitions.elections import decide_elect_leaders
from moldau.controller.partitions.leaders import PREFERRED
from moldau.controller.partitions.reassignment import WantedReplicas, decide_reassign
from moldau.core.errors import ApiError
from moldau.core.ids import TopicPartition
from tests.simulation.cluster.network import CLIENTS, STORE

if TYPE_CHECKING:
    from tests.simulation.cluster.node import Node
    from tests.simulation.cluster.world import Machine, World

DOWN_S = (0.05, 0.3, 1.0, 4.0)
STOPPED_S = (0.2, 1.5, 4.0, 8.0)
CUT_S = (0.3, 1.5, 4.0, 7.0)
PAUSE_S = (0.05, 0.3, 0.8, 2.0)


def may_lose_disk(machine: Machine, machines: Iterable[Machine]) -> bool:
    """What is acknowledged is on two disks at least: one may fail, and the next when that is made good.

    A broker that lost power may have all of it, but can't know: if the other disk fails then, the controller has
    nobody to elect, and an operator has to choose.
    """
    return not any(each.lost_power or each.lost_disk for each in machines if each is not machine)


def may_lose_power(machine: Machine, machines: Iterable[Machine], *, syncs_each: bool) -> bool:
    """Several at once where each acknowledgement waits for fsync: the one that led last has everything."""
    return not any(each.lost_disk or (each.lost_power and not syncs_each) for each in machines if each is not machine)


class Faults:
    def __init__(self, world: World) -> None:
        self.count = 0
        self._world = world
        self._random = world.random
        self._under_way: list[asyncio.Task[None]] = []

    async def run(self) -> None:
        """A number of them, and then the end of all that go on."""
        kinds: list[Callable[[], None]] = [
            self._kill, self._kill, self._lose_power, self._lose_disk, self._stop, self._suspend, self._cut_pair,
            self._cut_pair, self._isolate, self._cut_from_store, self._cut_from_clients, self._elect, self._reassign,
            self._reassign, self._cancel_reassignment, self._shift_clock, self._lose_store, self._give_evidence,
            self._fence_living,
        ]  # fmt: skip
        chosen = self._random.sample(kinds, self._random.randint(3, len(kinds)))
        for _ in range(self._random.randint(3, 10)):
            await asyncio.sleep(self._random.choice(PAUSE_S))
            self._world.look_after_the_damaged()
            self._random.choice(chosen)()
        if self._under_way:
            await asyncio.wait(self._under_way)

    def _begin(self, what: str, end: Callable[[], None], after_s: float) -> None:
        """Something that lasts for a while."""
        self.count += 1
        self._world.tell(f"{what} for {after_s} s")

        async def wait() -> None:
            await asyncio.sleep(after_s)
            self._world.tell(f"the end of: {what}")
            end()

        self._under_way.append(asyncio.ensure_future(wait()))

    def _machine(self) -> Machine:
        return self._random.choice([*self._world.machines.values()])

    def _kill(self) -> None:
        """One broker, or several at once."""
        for _ in range(self._random.choice([1, 1, 1, 2, 5])):
            self._kill_one(self._machine(), "is killed")

    def _kill_one(
        self, machine: Machine, what: str, *, power_is_lost: bool = False, disk_is_lost: bool = False
    ) -> None:
        world = self._world
        world.kill(machine, power_is_lost=power_is_lost, disk_is_lost=disk_is_lost)
        self._begin(f"broker {machine.broker_id} {what}", lambda: world.start(machine), self._random.choice(DOWN_S))

    def _lose_power(self) -> None:
        machine = self._machine()
        if may_lose_power(machine, self._world.machines.values(), syncs_each=self._world.syncs_each):
            machine.lost_power = True
            self._kill_one(machine, "loses power", power_is_lost=True)

    def _lose_disk(self) -> None:
        machine = self._machine()
        if may_lose_disk(machine, self._world.machines.values()):
            machine.lost_disk = True
            self._kill_one(machine, "loses its disk", power_is_lost=True, disk_is_lost=True)

    def _stop(self) -> None:
        """A clean stop; whoever runs the broker starts it again."""
        node = self._machine().node
        if node is not None and node.is_listening:
            self.count += 1
            self._world.tell(f"broker {node.broker_id} is to stop")
            node.stop()

    def _suspend(self) -> None:
        node = self._machine().node
        if node is not None:
            node.stop_for_now()
            self._begin(f"broker {node.broker_id} is suspended", node.go_on, self._random.choice(STOPPED_S))

    def _cut(self, what: str, links: list[tuple[int, int]]) -> None:
        network = self._world.network
        for source, target in links:
            network.cut(source, target)

        def mend() -> None:
            for source, target in links:
                network.mend(source, target)

        self._begin(f"{what} is cut", mend, self._random.choice(CUT_S))

    def _both_or_one(self, source: int, target: int) -> list[tuple[int, int]]:
        both = [(source, target), (target, source)]
        return self._random.choice([both, both, both[:1], both[1:]])

    def _cut_pair(self) -> None:
        source, target = self._random.sample(self._world.brokers, 2)
        links = self._both_or_one(source, target)
        self._cut(f"{links}", links)

    def _isolate(self) -> None:
        """One broker from all others, and perhaps from the store, too."""
        one = self._machine().broker_id
        places = [each for each in self._world.brokers if each != one] + self._random.choice([[], [STORE]])
        self._cut(f"broker {one} from {places}", [link for each in places for link in self._both_or_one(one, each)])

    def _cut_from_store(self) -> None:
        one = self._machine().broker_id
        self._cut(f"broker {one} from the store", self._both_or_one(one, STORE))

    def _cut_from_clients(self) -> None:
        one = self._machine().broker_id
        self._cut(f"broker {one} from clients", self._both_or_one(one, CLIENTS))

    def _lose_store(self) -> None:
        """Its majority is gone."""
        ensemble = self._world.ensemble
        if not ensemble.is_down:
            ensemble.is_down = True
            self._begin("the store is down", ensemble.come_back, self._random.choice(CUT_S))

    def _shift_clock(self) -> None:
        machine = self._machine()
        machine.clock_shift_ms += self._random.choice([-30_000, -2_000, 1_500, 60_000])
        self._world.tell(f"the clock of broker {machine.broker_id} is {machine.clock_shift_ms} ms off")

    def _operate(self, what: str, work: Coroutine[Any, Any, None]) -> None:
        self.count += 1
        self._world.tell(what)
        self._under_way.append(asyncio.ensure_future(work))

    def _elect(self) -> None:
        world = self._world
        partitions = [TopicPartition(world.topic, index) for index in range(world.partitions)]
        self._operate(
            "preferred leaders are elected",
            world.at_controller(
                lambda image, config: decide_elect_leaders(image, PREFERRED, partitions, config=config)
            ),
        )

    def _reassign(self) -> None:
        index = self._random.randrange(self._world.partitions)
        replicas = tuple(self._random.sample(self._world.brokers, 3))
        self._move(f"{index} is moved to {replicas}", WantedReplicas(self._world.topic, index, replicas))

    def _cancel_reassignment(self) -> None:
        index = self._random.randrange(self._world.partitions)
        self._move(f"the move of {index} is cancelled", WantedReplicas(self._world.topic, index, None))

    def _move(self, what: str, wanted: WantedReplicas) -> None:
        world = self._world
        self._operate(what, world.at_controller(lambda image, config: decide_reassign(image, [wanted], config=config)))

    def _give_evidence(self) -> None:
        """A broker is killed, and the controller hears that its port refuses before its session ends."""
        world, machine = self._world, self._machine()
        known = world.image.brokers.get(machine.broker_id)
        if machine.node is None or known is None:
            return
        self._kill_one(machine, "is killed and found dead")
        self._have_fenced(machine.broker_id, known.epoch)

    def _fence_living(self) -> None:
        self.fence_living(self._machine().broker_id)

    def fence_living(self, broker_id: int) -> None:
        """The controller is wrong about a broker, which has to come back by itself."""
        known = self._world.image.brokers.get(broker_id)
        if known is not None:
            self.count += 1
            self._world.tell(f"broker {broker_id} is taken for dead")
            self._have_fenced(broker_id, known.epoch)

    def _have_fenced(self, broker_id: int, epoch: int) -> None:
        for node in self._world.nodes():
            services = node.services
            if services is not None and services.controller.is_active:
                node.spawn(self._fence(node, broker_id, epoch))

    async def _fence(self, node: Node, broker_id: int, epoch: int) -> None:
        await asyncio.sleep(self._random.choice([0.01, 0.1]))
        with suppress(ApiError):
            await node.services.controller.fence(broker_id, broker_epoch=epoch)
