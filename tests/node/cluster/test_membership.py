"""What a broker says of itself in the metadata store."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from moldau.controller.image import BrokerImage, ClusterImage, Endpoint
from moldau.controller.members.registration import BrokerRegistration, serving
from moldau.node.cluster.membership import Membership, stop_leading
from moldau.replication.partition import Partition
from moldau.store.store import Registration, StoreError
from tests.replication.replicated import replicated


class Registry:
    """Of a store, as far as a broker says something of itself."""

    def __init__(self) -> None:
        self.is_down = False
        self.said: list[BrokerRegistration] = []

    async def update(self, registration: Registration) -> None:
        if self.is_down:
            raise StoreError("out of reach")
        self.said += serving([registration])


def member_of(registry: Registry) -> Membership:
    return Membership(registry, BrokerImage(1, {}), cluster_id="cluster", has_whole_logs=False, lost={})


def image_of(registration: BrokerRegistration, *, fenced: bool) -> ClusterImage:
    broker = BrokerImage(1, {}, incarnation=registration.incarnation)
    return ClusterImage(brokers={1: replace(broker, fenced=fenced)})


def test_every_try_to_register_again_is_another_incarnation() -> None:
    """One that the store took, and said so to nobody, may be fenced by now; nobody takes it in any more."""
    membership = Membership(cast(Any, None), BrokerImage(1, {}), cluster_id="cluster", has_whole_logs=True, lost={})
    tries = serving(membership.register_anew() for _ in range(3))
    assert len({each.incarnation for each in tries}) == 3


def test_an_address_of_another_broker_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    """As of two machines that have the same server.properties, or listen on 127.0.0.1."""
    here, there = {"PLAINTEXT": Endpoint("127.0.0.1", 9092)}, {"PLAINTEXT": Endpoint("127.0.0.1", 9093)}
    others = {2: BrokerImage(2, here), 3: BrokerImage(3, there), 4: BrokerImage(4, here, fenced=True)}
    membership = Membership(Registry(), BrokerImage(1, here), cluster_id="cluster", has_whole_logs=True, lost={})
    [registered] = serving([membership.register_anew()])
    ours = BrokerImage(1, here, incarnation=registered.incarnation)
    assert not membership.follow(ClusterImage(brokers=others))
    assert not caplog.messages
    for _ in range(2):
        assert membership.follow(ClusterImage(brokers={**others, 1: ours}))
    assert caplog.messages == [
        "broker 2 advertises 127.0.0.1:9092 too, so that clients and brokers can't reach both; set an address of its "
        "own for each (advertised.listeners)"
    ]


def test_who_is_out_of_reach_is_said_once_and_again_if_it_was_not_heard() -> None:
    registry = Registry()
    membership = member_of(registry)

    async def test() -> None:
        await membership.tell(())
        assert registry.said == []
        registry.is_down = True
        with pytest.raises(StoreError):
            await membership.tell((2,))
        assert not membership.is_told
        registry.is_down = False
        await membership.tell((2,))
        await membership.tell((2,))
        await membership.tell(())

    asyncio.run(test())
    assert [each.out_of_reach for each in registry.said] == [(2,), ()]
    assert len({each.incarnation for each in registry.said}) == 1


def test_a_broker_that_was_fenced_while_it_lived_comes_back_as_another_with_all_its_logs() -> None:
    registry = Registry()
    membership = member_of(registry)

    async def test() -> None:
        await membership.tell((2,))
        (before,) = registry.said
        assert not membership.is_fenced(ClusterImage())
        assert membership.follow(image_of(before, fenced=False))
        assert not membership.is_fenced(image_of(before, fenced=False))
        assert membership.is_fenced(image_of(before, fenced=True))
        await membership.come_back()
        assert not membership.is_fenced(image_of(before, fenced=True)), "that is about the one before"

    asyncio.run(test())
    before, after = registry.said
    assert after.incarnation != before.incarnation
    assert (before.has_whole_logs, after.has_whole_logs) == (False, True)
    assert (before.goes_on, after.goes_on) == (False, True)
    assert after.out_of_reach == (2,)
    assert membership.is_followed


def test_a_fault_of_one_who_waits_leaves_no_partition_led(tmp_path: Path) -> None:
    """After a lost session others may lead all of them."""

    class Faulty:
        def grown(self, _: Partition, _size_bytes: int) -> None: ...

        def disturbed(self) -> None:
            raise KeyError("a mistake of ours")

    led = [replicated(tmp_path / name) for name in ("first", "second", "third")]
    led[0].commit_watchers[Faulty()] = None
    stop_leading(led)
    assert [each.is_leader for each in led] == [False, False, False]
