"""A broker that the others can't reach, although the metadata store can: the others go on without it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

import pytest

from tests.simulation.cluster.running import simulate
from tests.simulation.cluster.store import SESSION_S
from tests.simulation.cluster.world import World

OTHERS_LEAD_S_MAX = SESSION_S + 2.0
CUT_S = 12.0
COME_BACK_S_MAX = 1.5
SEEDS = range(4)


def controller(world: World) -> int:
    assert world.ensemble.controller is not None
    return world.ensemble.controller.broker_id


def leader(world: World) -> int:
    return world.states()[0].leader


async def be_cut_off(world: World, choose: Callable[[World], int], *, hears: bool, is_heard: bool) -> None:
    one = choose(world)
    others = [each for each in world.brokers if each != one]
    links = [(one, each) for each in others if not is_heard] + [(each, one) for each in others if not hears]
    world.tell(f"broker {one} is cut off")
    for source, target in links:
        world.network.cut(source, target)
    await asyncio.sleep(OTHERS_LEAD_S_MAX)
    for _ in range(int((CUT_S - OTHERS_LEAD_S_MAX) * 10)):
        if one in (leader(world), controller(world)) or not world.image.brokers[one].fenced:
            world.violate(f"broker {one} leads, or controls, although it is cut off")
        await asyncio.sleep(0.1)
    for source, target in links:
        world.network.mend(source, target)


@pytest.mark.parametrize("choose", [controller, leader])
@pytest.mark.parametrize(("hears", "is_heard"), [(False, False), (True, False), (False, True)])
def test_a_broker_that_is_cut_off_leads_and_controls_no_longer(
    choose: Callable[[World], int], hears: bool, is_heard: bool
) -> None:
    """And is in sync again at the end, which the simulation sees to."""
    for seed in SEEDS:
        simulate(seed, partial(be_cut_off, choose=choose, hears=hears, is_heard=is_heard))


async def be_fenced(world: World) -> None:
    """Two of them, and the controller with them if it is one of the two."""
    fenced = {broker_id: world.image.brokers[broker_id].epoch for broker_id in world.brokers[:2]}
    for broker_id in fenced:
        world.faults.fence_living(broker_id)
    await asyncio.sleep(COME_BACK_S_MAX)
    for broker_id, epoch in fenced.items():
        known = world.image.brokers[broker_id]
        if known.fenced or known.epoch <= epoch:
            world.violate(f"broker {broker_id} is not taken in again")


def test_living_brokers_that_were_fenced_come_back() -> None:
    for seed in SEEDS:
        simulate(seed, be_fenced)
