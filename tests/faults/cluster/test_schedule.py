"""Which faults strike is decided by the seed alone, every kind has its turn, and each can be done."""

from __future__ import annotations

from itertools import islice

from tests.faults.cluster.faults import STRIKES
from tests.faults.cluster.schedule import KINDS, ONE_BROKER, plan, possible


def test_the_same_seed_gives_the_same_faults() -> None:
    kinds = possible(brokers=3, store="zookeeper")
    first, again, other = (list(islice(plan(seed, kinds, hold_s_max=50), 100)) for seed in (7, 7, 8))
    assert first == again != other


def test_every_kind_comes_before_any_comes_again() -> None:
    kinds = possible(brokers=3, store="zookeeper")
    assert len(kinds) == len(KINDS)
    assert {planned.kind for planned in islice(plan(3, kinds, hold_s_max=50), len(kinds))} == set(kinds)


def test_every_role_is_struck_in_the_course_of_time() -> None:
    planned = list(islice(plan(1, KINDS, hold_s_max=50), 2_000))
    assert {(each.kind.name, each.role) for each in planned} == {
        (kind.name, role) for kind in KINDS for role in kind.roles
    }
    assert {each.role for each in planned if each.is_one_broker} == set(ONE_BROKER)


def test_holds_stay_within_their_limits() -> None:
    for planned in islice(plan(1, KINDS, hold_s_max=10), 500):
        least, most = planned.kind.hold_s
        assert least <= planned.hold_s <= max(least, min(most, 10))


def test_a_cluster_has_only_the_faults_that_it_can_have() -> None:
    sqlite = {kind.name for kind in possible(brokers=3, store="sqlite")}
    assert "kill -9" in sqlite
    assert not any("store" in name for name in sqlite)
    assert "disk lost" not in {kind.name for kind in possible(brokers=1, store="sqlite")}
    assert [kind.name for kind in possible(brokers=3, store="sqlite", only=["torn"])] == ["torn tail"]


def test_some_roles_are_struck_alone() -> None:
    kinds = possible(brokers=3, store="sqlite", roles=["all", "majority"])
    assert {kind.name for kind in kinds} == {"kill -9", "SIGTERM", "SIGSTOP", "isolation"}
    assert {each.role for each in islice(plan(1, kinds, hold_s_max=10), 100)} == {"all", "majority"}


def test_every_kind_can_be_done() -> None:
    assert set(STRIKES) == {kind.name for kind in KINDS}
