from __future__ import annotations

from copy import deepcopy

from moldau.groups.consumer.facts import (
    GroupEpochSet,
    ProfileSet,
    ProgressSet,
    RegexSet,
    ResolvedRegex,
    TargetEpochSet,
    TargetSet,
)
from moldau.groups.consumer.group import ConsumerGroup, ConsumerState
from moldau.groups.consumer.members import ConsumerMember, MemberState, Profile, Progress

T = b"t" * 16


def group_of(*facts: object) -> ConsumerGroup:
    group = ConsumerGroup("g")
    for fact in facts:
        group.apply(fact)  # type: ignore[arg-type]
    return group


def has(member_id: str, *partitions: int, epoch: int = 2) -> ProgressSet:
    return ProgressSet("g", member_id, Progress(epoch, 0, assigned={T: dict.fromkeys(partitions, epoch)}))


def test_the_state_follows_from_the_facts() -> None:
    group, states = group_of(), [ConsumerState.EMPTY]
    for fact in (
        ProfileSet("g", "a", Profile()),
        GroupEpochSet("g", 2),
        TargetEpochSet("g", 2, 5),
        has("a", 1),
        ProgressSet("g", "a", Progress(2, 0, MemberState.UNRELEASED)),
        ProfileSet("g", "a", None),
    ):
        group.apply(fact)
        states.append(group.state)
    assert [state.value for state in states] == [
        "Empty", "Reconciling", "Assigning", "Reconciling", "Stable", "Reconciling", "Empty",
    ]  # fmt: skip


def test_a_partition_has_an_owner_until_it_is_given_up() -> None:
    group = group_of(has("a", 0, 1), has("b", 2))
    assert [group.owner_of(T, partition) for partition in range(4)] == ["a", "a", "b", None]
    group.apply(ProgressSet("g", "a", Progress(2, 2, MemberState.UNREVOKED, {T: {0: 2}}, {T: {1: 2}})))
    assert group.owner_of(T, 1) == "a"
    group.apply(has("a", 0, epoch=3))
    assert (group.owner_of(T, 0), group.owner_of(T, 1)) == ("a", None)
    group.apply(ProgressSet("g", "a", None))
    group.apply(ProfileSet("g", "a", None))
    assert (group.owners, set(group.members)) == ({T: {2: "b"}}, {"b"})


def test_a_static_member_is_found_by_its_instance_until_it_goes() -> None:
    group = group_of(ProfileSet("g", "a", Profile(instance_id="i")))
    assert group.static_member("i") == ConsumerMember("a", Profile(instance_id="i"))
    group.apply(ProfileSet("g", "b", Profile(instance_id="i")))
    group.apply(ProfileSet("g", "a", None))
    assert group.static_ids == {"i": "b"}
    group.apply(ProfileSet("g", "b", None))
    assert (group.static_member("i"), group.static_ids) == (None, {})


def test_topics_are_subscribed_to_by_name_and_by_resolved_expressions() -> None:
    group = group_of(
        ProfileSet("g", "a", Profile(topics=frozenset({"x"}))),
        ProfileSet("g", "b", Profile(regex="y.*")),
        RegexSet("g", "y.*", ResolvedRegex(frozenset({"y1"}), 1, 1)),
    )
    assert group.subscribed_topics() == {"x", "y1"}
    assert [group.topics_of(group.members[each]) for each in ("a", "b")] == [{"x"}, {"y1"}]
    assert [group.is_subscribed_to(name) for name in ("x", "y1", "z")] == [True, True, False]
    assert group.subscribed_regexes() == {"y.*"}


def test_the_assignor_with_most_votes_wins_and_the_first_one_if_nobody_votes() -> None:
    group = group_of(ProfileSet("g", "a", Profile()))
    assert group.assignor_name(("uniform", "range")) == "uniform"
    group.apply(ProfileSet("g", "b", Profile(assignor="range")))
    assert group.assignor_name(("uniform", "range")) == "range"


def test_what_is_removed_twice_or_was_never_there_does_no_harm() -> None:
    group = group_of()
    for fact in (
        ProgressSet("g", "a", None),
        TargetSet("g", "a", None),
        ProfileSet("g", "a", None),
        RegexSet("g", "x", None),
    ):
        group.apply(fact)
    assert group == ConsumerGroup("g")


def test_a_copy_is_its_own() -> None:
    group = group_of(has("a", 0), TargetSet("g", "a", {T: frozenset({0})}))
    before, copy = deepcopy(group), group.copy()
    assert copy == group
    for fact in (has("a", 1), TargetSet("g", "a", None), ProfileSet("g", "b", Profile(instance_id="i"))):
        copy.apply(fact)
    assert group == before
