"""Each partition has one owner who subscribed; shares are even; nothing moves that could have stayed."""

from __future__ import annotations

import base64
import json
import random
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.groups.consumer.assignors import ASSIGNORS, Assignment, MemberSpec, TopicShape, assign_range, assign_uniform
from tests.apache_kafka import available, java_command

ORACLE = Path(__file__).with_name("AssignorOracle.java")
TOPIC_IDS = [bytes([0xA0 + number]) * 16 for number in range(5)]
A, B, C = TOPIC_IDS[:3]
Topics = Mapping[bytes, TopicShape]


def shapes(*counts: int) -> dict[bytes, TopicShape]:
    return {topic_id: TopicShape(topic_id, count) for topic_id, count in zip(TOPIC_IDS, counts, strict=False)}


def member(name: str, *subscribed: bytes, instance: str | None = None, **owned: set[int]) -> MemberSpec:
    """`owned` is by the letter of the topic."""
    had = {TOPIC_IDS["ABCDE".index(letter)]: frozenset(partitions) for letter, partitions in owned.items()}
    return MemberSpec(name, instance, frozenset(subscribed), had)


def total(assignment: Assignment) -> int:
    return sum(map(len, assignment.values()))


def pairs(assignment: Assignment) -> set[tuple[bytes, int]]:
    return {(topic_id, partition) for topic_id, partitions in assignment.items() for partition in partitions}


def after(members: Sequence[MemberSpec], given: Mapping[str, Assignment]) -> list[MemberSpec]:
    return [each._replace(owned=given[each.member_id]) for each in members]


def moved(members: Sequence[MemberSpec], given: Mapping[str, Assignment]) -> int:
    """How many partitions left a member that still is there."""
    return sum(len(pairs(each.owned) - pairs(given[each.member_id])) for each in members)


@st.composite
def groups(draw: st.DrawFn, *, homogeneous: bool = False) -> tuple[list[MemberSpec], Topics]:
    """Members with what they own of earlier times: of topics that are gone, that shrank, or that they left."""
    topics = shapes(*draw(st.lists(st.integers(1, 9), min_size=1, max_size=4)))
    names = [f"m{number}" for number in range(draw(st.integers(1, 6)))]
    some = st.frozensets(st.sampled_from(TOPIC_IDS), max_size=5)
    same = draw(some)
    owners = draw(st.dictionaries(st.tuples(st.sampled_from(TOPIC_IDS), st.integers(0, 10)), st.sampled_from(names)))
    members = []
    for name in names:
        owned: dict[bytes, set[int]] = {}
        for (topic_id, partition), owner in owners.items():
            if owner == name:
                owned.setdefault(topic_id, set()).add(partition)
        subscribed = same if homogeneous else draw(some)
        instance = draw(st.sampled_from([None, f"i-{name}"]))
        had = {topic_id: frozenset(partitions) for topic_id, partitions in owned.items()}
        members.append(MemberSpec(name, instance, subscribed, had))
    return members, topics


@pytest.mark.parametrize("assignor", list(ASSIGNORS))
@given(groups())
def test_every_partition_has_one_owner_who_subscribed(assignor: str, group: tuple[list[MemberSpec], Topics]) -> None:
    members, topics = group
    given_ = ASSIGNORS[assignor](members, topics)
    assert set(given_) == {each.member_id for each in members}
    owned = [pair for assignment in given_.values() for pair in pairs(assignment)]
    wanted = frozenset[bytes]().union(*(each.subscribed for each in members))
    assert sorted(owned) == sorted(
        (topic_id, partition)
        for topic_id, shape in topics.items()
        if topic_id in wanted
        for partition in range(shape.partition_count)
    )
    for each in members:
        assert set(given_[each.member_id]) <= each.subscribed
        assert all(given_[each.member_id].values()), "a topic without partitions isn't named"


@given(groups(homogeneous=True))
def test_uniform_is_even_and_moves_no_more_than_that_takes(group: tuple[list[MemberSpec], Topics]) -> None:
    members, topics = group
    given_ = assign_uniform(members, topics)
    totals = [total(assignment) for assignment in given_.values()]
    assert max(totals) - min(totals) <= 1
    share, extra = divmod(sum(totals), len(members))
    kept = [len(valid(each, topics)) for each in members]
    over = sum(max(0, count - share) for count in kept)
    may_stay = min(extra, sum(count > share for count in kept))
    gone = sum(len(pairs(each.owned)) for each in members) - sum(kept)
    assert moved(members, given_) - gone == over - may_stay


@given(groups())
def test_uniform_leaves_no_pair_that_one_move_would_make_more_even(group: tuple[list[MemberSpec], Topics]) -> None:
    members, topics = group
    given_ = assign_uniform(members, topics)
    for giver in members:
        for taker in members:
            if set(given_[giver.member_id]) & taker.subscribed:
                assert total(given_[giver.member_id]) - total(given_[taker.member_id]) <= 1


@pytest.mark.parametrize("assignor", list(ASSIGNORS))
@given(groups(), st.randoms(use_true_random=False))
def test_the_same_group_in_any_order_stays_as_it_is(
    assignor: str, group: tuple[list[MemberSpec], Topics], chance: random.Random
) -> None:
    members, topics = group
    given_ = ASSIGNORS[assignor](members, topics)
    again = after(members, given_)
    chance.shuffle(again)
    assert ASSIGNORS[assignor](again, topics) == given_


def valid(each: MemberSpec, topics: Topics) -> set[tuple[bytes, int]]:
    return {
        (topic_id, partition)
        for topic_id, partition in pairs(each.owned)
        if topic_id in each.subscribed and topic_id in topics and partition < topics[topic_id].partition_count
    }


def test_uniform_gives_what_a_leaver_had_to_the_others_and_moves_nothing_else() -> None:
    members = [member(name, A, B) for name in "xyz"]
    topics = shapes(6, 6)
    before = assign_uniform(members, topics)
    rest = after(members, before)[:2]
    given_ = assign_uniform(rest, topics)
    assert moved(rest, given_) == 0
    assert sorted(map(total, given_.values())) == [6, 6]


def test_uniform_moves_what_a_newcomer_needs_and_no_more() -> None:
    old = after([member("x", A), member("y", A)], assign_uniform([member("x", A), member("y", A)], shapes(7)))
    given_ = assign_uniform([*old, member("z", A)], shapes(7))
    assert sorted(map(total, given_.values())) == [2, 2, 3]
    assert moved(old, given_) == 2


def test_uniform_lets_members_that_alone_read_a_topic_read_less_of_others() -> None:
    given_ = assign_uniform([member("x", A, B), member("y", B), member("z", B)], shapes(4, 6))
    assert {name: total(assignment) for name, assignment in given_.items()} == {"x": 4, "y": 3, "z": 3}


def test_uniform_ignores_topics_that_do_not_exist() -> None:
    assert assign_uniform([member("x", C, C=(had := {0, 1}))], shapes(3)) == {"x": {}}
    assert had == {0, 1}


def test_range_splits_topics_of_the_same_size_alike() -> None:
    given_ = assign_range([member("x", A, B), member("y", A, B)], shapes(3, 3))
    assert given_ == {
        "x": {A: frozenset({0, 1}), B: frozenset({0, 1})},
        "y": {A: frozenset({2}), B: frozenset({2})},
    }


def test_range_counts_static_members_first_by_instance() -> None:
    members = [member("a", A), member("b", A, instance="i2"), member("c", A, instance="i1")]
    assert assign_range(members, shapes(3)) == {
        "c": {A: frozenset({0})},
        "b": {A: frozenset({1})},
        "a": {A: frozenset({2})},
    }


def test_nobody_gets_nothing() -> None:
    assert assign_uniform([], shapes(3)) == {}
    assert assign_range([], shapes(3)) == {}


@pytest.mark.parametrize("assignor", list(ASSIGNORS))
def test_fifty_members_and_a_thousand_partitions_take_milliseconds(assignor: str) -> None:
    topics = {bytes([number]): TopicShape(bytes([number]), 100) for number in range(10)}
    chance = random.Random(7)
    members = [MemberSpec(f"m{number}", None, frozenset(chance.sample(sorted(topics), 6)), {}) for number in range(50)]
    assign = ASSIGNORS[assignor]
    members = after(members, assign(members, topics))[5:]
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        assign(members, topics)
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.05, "a few milliseconds on a free core; the loop must not be held by it"


@pytest.mark.skipif(not available(), reason="needs Java and Apache Kafka's jars")
def test_beside_apache_kafka() -> None:
    """Range is the same to the partition; uniform is as even, and moves no more in a group of one subscription."""
    histories = [step for seed in range(60) for step in history(seed)]
    answers = oracle(histories)
    for (assignor, members, topics), theirs in zip(histories, answers, strict=True):
        ours = ASSIGNORS[assignor](members, topics)
        if assignor == "range":
            assert ours == theirs
            continue
        theirs = {each.member_id: theirs.get(each.member_id, {}) for each in members}
        assert unevenness(ours) <= unevenness(theirs)
        if len({each.subscribed for each in members}) == 1:
            assert moved(members, ours) <= moved(members, theirs)


Step = tuple[str, list[MemberSpec], Topics]


def history(seed: int) -> list[Step]:
    """A group that members join and leave, and whose topics grow."""
    chance = random.Random(seed)
    assignor = chance.choice(list(ASSIGNORS))
    counts = [chance.randint(1, 8) for _ in range(chance.randint(1, 4))]
    all_topics = list(shapes(*counts))
    is_homogeneous = chance.random() < 0.5
    members: list[MemberSpec] = []
    steps: list[Step] = []
    for number in range(6):
        if members and chance.random() < 0.3:
            members.remove(chance.choice(members))
        else:
            some = all_topics if is_homogeneous else chance.sample(all_topics, chance.randint(1, len(all_topics)))
            members.append(member(f"m{seed}-{number}", *some, instance=chance.choice([None, f"i{9 - number}"])))
        if chance.random() < 0.3:
            counts[0] += 2
        if members:
            steps.append((assignor, list(members), shapes(*counts)))
            members = after(members, ASSIGNORS[assignor](members, shapes(*counts)))
    return steps


def unevenness(given_: Mapping[str, Assignment]) -> int:
    return sum(total(assignment) ** 2 for assignment in given_.values())


def oracle(steps: Sequence[Step]) -> list[dict[str, Assignment]]:
    cases = [
        {
            "assignor": assignor,
            "topics": {text(topic_id): shape.partition_count for topic_id, shape in topics.items()},
            "members": [
                {
                    "id": each.member_id,
                    "instance": each.instance_id,
                    "subscribed": [text(topic_id) for topic_id in each.subscribed],
                    "owned": {text(topic_id): sorted(partitions) for topic_id, partitions in each.owned.items()},
                }
                for each in members
            ],
        }
        for assignor, members, topics in steps
    ]
    done = subprocess.run(
        java_command(str(ORACLE)), input=json.dumps(cases), capture_output=True, text=True, timeout=120, check=True
    )
    answers: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    return [
        {
            name: {base64.urlsafe_b64decode(topic + "=="): frozenset(some) for topic, some in assignment.items()}
            for name, assignment in answer.items()
        }
        for answer in answers
    ]


def text(topic_id: bytes) -> str:
    return base64.urlsafe_b64encode(topic_id).decode().rstrip("=")
