"""ConsumerGroupHeartbeat: joining, staying and leaving a consumer group, and what happens when time is up.

A heartbeat goes through four steps, each of which may have nothing to do: the member's profile is brought up to date,
the group's epoch rises if there is a reason for another assignment, the target of that epoch is computed, and the
member is brought nearer to its own part of it.

A group that is classic when the first heartbeat comes is the shard's affair (`GroupShard.decide_consumer_heartbeat`):
there an empty one is replaced, and there migration takes over one with members.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from moldau.core.decision import Decision
from moldau.core.errors import ApiError, ErrorCode
from moldau.core.patterns import InvalidPattern, compile_pattern
from moldau.groups.classic.membership import Leaving
from moldau.groups.consumer.facts import ProfileSet, ProgressSet, RegexSet, ResolvedRegex, ViewerSet
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.members import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    NO_TIMEOUT,
    STATIC_LEAVE_EPOCH,
    ConsumerMember,
    EpochPartitions,
    MemberState,
    Partitions,
    Profile,
    Progress,
)
from moldau.groups.consumer.turn import ConsumerTurn, consumer_rebalance_key, consumer_regex_key
from moldau.groups.limits import ConsumerGroupConfig
from moldau.wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

REGEX_INTERVAL_MS_MIN = 10_000  # Kafka's: many members that come with many patterns are resolved together
OWN_ID_SINCE = 1


class Heartbeat(Struct, frozen=True, kw_only=True):
    """A ConsumerGroupHeartbeat request in the coordinator's words; None where nothing is said."""

    group_id: str
    member_id: str = ""
    new_member_id: str = ""
    """The id to give if it has none. Chance comes in as an argument."""
    epoch: int = JOIN_EPOCH
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = NO_TIMEOUT
    topics: frozenset[str] | None = None
    regex: str | None = None
    assignor: str | None = None
    owned: Partitions | None = None
    client_id: str = ""
    client_host: str = ""
    may_describe: Callable[[str], bool] | None = None
    """Whether the member may see a topic; None where everybody sees all of them."""

    @property
    def is_joining(self) -> bool:
        return self.epoch == JOIN_EPOCH

    @property
    def is_leaving(self) -> bool:
        return self.epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH)

    @property
    def is_full(self) -> bool:
        """The client says everything, as after it lost an answer, and wants to hear everything."""
        has_subscription = self.topics is not None or self.regex is not None
        return self.rebalance_timeout_ms != NO_TIMEOUT and has_subscription and self.owned is not None


def check_heartbeat(heartbeat: Heartbeat, version: int, config: ConsumerGroupConfig) -> None:
    """What is wrong with a request whatever the group is. Raises ApiError."""
    if (
        version >= OWN_ID_SINCE or heartbeat.epoch > 0 or heartbeat.epoch == LEAVE_EPOCH
    ) and not heartbeat.member_id.strip():
        raise _invalid("MemberId can't be empty.")
    texts = (("GroupId", heartbeat.group_id), ("InstanceId", heartbeat.instance_id), ("RackId", heartbeat.rack_id))
    for name, text in texts:
        if text is not None and not text.strip():
            raise _invalid(f"{name} can't be empty.")
    if heartbeat.is_joining:
        _check_first(heartbeat)
    elif heartbeat.epoch == STATIC_LEAVE_EPOCH and heartbeat.instance_id is None:
        raise _invalid("InstanceId can't be null.")
    elif heartbeat.epoch < STATIC_LEAVE_EPOCH:
        raise _invalid("MemberEpoch is invalid.")
    if heartbeat.assignor is not None and heartbeat.assignor not in config.assignors:
        raise ApiError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {heartbeat.assignor} is not supported. "
            f"Supported assignors: {', '.join(config.assignors)}.",
        )


def _check_first(heartbeat: Heartbeat) -> None:
    if heartbeat.rebalance_timeout_ms == NO_TIMEOUT:
        raise _invalid("RebalanceTimeoutMs must be provided in first request.")
    if heartbeat.owned is None or heartbeat.owned:
        raise _invalid("TopicPartitions must be empty when (re-)joining.")
    if heartbeat.topics is None and heartbeat.regex is None:
        raise _invalid("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, message)


def no_group(group_id: str, *, is_classic: bool, is_leaving: bool) -> ApiError:
    if is_classic:
        message = f"Group {group_id} is not a consumer group."
    else:
        message = f"Group {group_id} not found." if is_leaving else f"Consumer group {group_id} not found."
    return ApiError(ErrorCode.GROUP_ID_NOT_FOUND, message)


def heartbeat(turn: ConsumerTurn, heartbeat: Heartbeat) -> ConsumerGroupHeartbeatResponse:
    """The answer to a member that joins or stays. Raises ApiError, and then nothing of the turn counts."""
    _check_room(turn, heartbeat)
    member = _member_of(turn, heartbeat, heartbeat.member_id or heartbeat.new_member_id)
    profile = _updated(member.profile, heartbeat)
    is_renamed = profile.topics != member.profile.topics
    is_resolved = is_repatterned = False
    if profile != member.profile or member.member_id not in turn.group.members:
        is_repatterned, is_resolved = _change_profile(turn, member, profile)
    if profile.regex:
        _refresh_regexes(turn, heartbeat.may_describe)
    turn.check_topics(is_due=is_renamed or is_resolved)
    turn.assign()
    turn.reconcile(member.member_id, heartbeat.owned, is_resubscribed=is_renamed or is_repatterned)
    turn.await_heartbeat(member.member_id)
    progress = turn.group.members[member.member_id].progress
    answer = ConsumerGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=progress.epoch,
        heartbeat_interval_ms=turn.config.heartbeat_interval_ms,
    )
    if heartbeat.is_joining or heartbeat.is_full or progress.assigned != member.progress.assigned:
        answer.assignment = _assignment(progress.assigned)
    return answer


def _assignment(assigned: EpochPartitions) -> Assignment:
    return Assignment([TopicPartitions(topic_id, sorted(held)) for topic_id, held in assigned.items()])


def _check_room(turn: ConsumerTurn, heartbeat: Heartbeat) -> None:
    members, members_max = turn.group.members, turn.config.max_size
    if len(members) >= members_max and heartbeat.member_id not in members:
        raise ApiError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {members_max} members.",
        )


def _member_of(turn: ConsumerTurn, heartbeat: Heartbeat, member_id: str) -> ConsumerMember:
    """The member that speaks, as it was before it did."""
    group = turn.group
    if heartbeat.instance_id is None:
        if heartbeat.is_joining:
            return group.members.get(member_id) or ConsumerMember(member_id)
        member = known_member(group, member_id)
    else:
        known = group.static_member(heartbeat.instance_id)
        if heartbeat.is_joining:
            if known is None:
                return group.members.get(member_id) or ConsumerMember(member_id)
            return _replaced(turn, known, member_id, heartbeat.instance_id)
        member = static_member(group, heartbeat.instance_id, member_id)
    _check_epoch(member, heartbeat)
    return member


def known_member(group: ConsumerGroup, member_id: str) -> ConsumerMember:
    member = group.members.get(member_id)
    if member is None:
        message = f"Member {member_id} is not a member of group {group.group_id}."
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, message)
    return member


def static_member(group: ConsumerGroup, instance_id: str, member_id: str) -> ConsumerMember:
    """The member of an instance id, which the client must be itself."""
    member = group.static_member(instance_id)
    if member is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        raise ApiError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member {member.member_id}.",
        )
    return member


def _check_epoch(member: ConsumerMember, heartbeat: Heartbeat) -> None:
    """One epoch behind is fine for a client that missed our answer, if it has nothing that it should not have."""
    if heartbeat.epoch == member.epoch:
        return
    is_behind = heartbeat.epoch < member.epoch
    if (
        is_behind
        and heartbeat.epoch == member.progress.previous_epoch
        and _has_only(heartbeat.owned, member.progress.assigned)
    ):
        return
    size = "smaller" if is_behind else "greater"
    raise ApiError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {size} member epoch ({heartbeat.epoch}) than the one known by the group "
        f"coordinator ({member.epoch}). The member must abandon all its partitions and rejoin.",
    )


def _has_only(owned: Partitions | None, assigned: EpochPartitions) -> bool:
    return owned is not None and all(
        topic_id in assigned and partitions <= assigned[topic_id].keys() for topic_id, partitions in owned.items()
    )


def _replaced(turn: ConsumerTurn, old: ConsumerMember, member_id: str, instance_id: str) -> ConsumerMember:
    """A static member came back: it takes its own place under another id, once the old one has left for a while."""
    if not old.is_classic and old.epoch != STATIC_LEAVE_EPOCH:
        raise ApiError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} cannot join the group because the instance id "
            f"is owned by {old.member_id} member.",
        )
    return turn.replace(old, member_id)


def _updated(profile: Profile, heartbeat: Heartbeat) -> Profile:
    return Profile(
        client_id=heartbeat.client_id,
        client_host=heartbeat.client_host,
        instance_id=profile.instance_id if heartbeat.instance_id is None else heartbeat.instance_id,
        rack_id=profile.rack_id if heartbeat.rack_id is None else heartbeat.rack_id,
        topics=profile.topics if heartbeat.topics is None else heartbeat.topics,
        regex=profile.regex if heartbeat.regex is None else heartbeat.regex,
        rebalance_timeout_ms=(
            profile.rebalance_timeout_ms
            if heartbeat.rebalance_timeout_ms == NO_TIMEOUT
            else heartbeat.rebalance_timeout_ms
        ),
        assignor=profile.assignor if heartbeat.assignor is None else heartbeat.assignor,
        classic=None,
    )


def _change_profile(turn: ConsumerTurn, member: ConsumerMember, profile: Profile) -> tuple[bool, bool]:
    """Whether the regular expression is another one, and whether its topics are known already."""
    group = turn.group
    old, new = member.profile.regex, profile.regex
    is_other = old != new
    is_resolved = False
    if is_other and new:
        if new not in group.subscribed_regexes():
            _check_regex(new)
        else:
            is_resolved = new in group.regexes
    elif is_other and old:
        is_resolved = True
    turn.record(ProfileSet(group.group_id, member.member_id, profile))
    if is_other:
        turn.drop_unused_regexes()
    return is_other, is_resolved


def _check_regex(regex: str) -> None:
    try:
        compile_pattern(regex)
    except InvalidPattern as wrong:
        message = f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {wrong}."
        raise ApiError(ErrorCode.INVALID_REGULAR_EXPRESSION, message) from None


def _refresh_regexes(turn: ConsumerTurn, may_describe: Callable[[str], bool] | None) -> None:
    """Resolving is a decision of its own, soon after: it looks at every topic, and serves all members at once.

    As in Kafka, it is the rights of the member that asked for it by which all of them see topics.
    """
    group, now_ms = turn.group, turn.now_ms
    last = next(iter(group.regexes.values()), None)
    if last is not None and now_ms <= last.at_ms + REGEX_INTERVAL_MS_MIN:
        return
    if (
        last is None
        or group.subscribed_regexes() != group.regexes.keys()
        or last.version < turn.topics.grown_version
        or now_ms > last.at_ms + turn.config.regex_refresh_ms
    ):
        if may_describe is not None:
            turn.record(ViewerSet(group.group_id, may_describe))
        turn.set_timer(consumer_regex_key(group.group_id), 0)


def leave(turn: ConsumerTurn, heartbeat: Heartbeat) -> ConsumerGroupHeartbeatResponse:
    """A static member may leave for a while, and finds its partitions again if it is back in time."""
    group = turn.group
    if heartbeat.instance_id is None:
        member = known_member(group, heartbeat.member_id)
    else:
        member = static_member(group, heartbeat.instance_id, heartbeat.member_id)
    if heartbeat.epoch == STATIC_LEAVE_EPOCH and heartbeat.instance_id is not None:
        turn.record(ProgressSet(group.group_id, member.member_id, _paused(member.progress)))
    else:
        turn.fence((member.member_id,))
    return ConsumerGroupHeartbeatResponse(member_id=member.member_id, member_epoch=heartbeat.epoch)


def _paused(progress: Progress) -> Progress:
    assigned = {topic_id: dict.fromkeys(held, 0) for topic_id, held in progress.assigned.items()}
    return replace(progress, epoch=STATIC_LEAVE_EPOCH, assigned=assigned, revoking={})


def remove_members(turn: ConsumerTurn, leaving: Sequence[Leaving]) -> Decision[list[ErrorCode]]:
    """LeaveGroup, by which administrators remove members: one answer for each, and one rebalance for all of them."""
    group = turn.group
    gone: dict[str, None] = {}
    replies = []
    for each in leaving:
        try:
            if each.instance_id is None:
                member = known_member(group, each.member_id)
            else:
                known_id = each.member_id or group.static_ids.get(each.instance_id, "")
                member = static_member(group, each.instance_id, known_id)
        except ApiError as wrong:
            replies.append(wrong.code)
        else:
            replies.append(ErrorCode.NONE)
            gone[member.member_id] = None
    turn.fence(gone)
    return turn.decide(replies)


def resume(turn: ConsumerTurn) -> None:
    """After recovery every member has its full time again; the old coordinator's clock is unknown."""
    for member in turn.group.members.values():
        turn.await_heartbeat(member.member_id)
        if member.progress.state is MemberState.UNREVOKED:
            key = consumer_rebalance_key(turn.group.group_id, member.member_id)
            turn.set_timer(key, member.profile.rebalance_timeout_ms)


def member_expired(turn: ConsumerTurn, member_id: str) -> Decision[None]:
    """A member was silent for too long, or a classic one did not join or fetch its assignment in time."""
    if member_id in turn.group.members:
        turn.fence((member_id,))
    return turn.decide(None)


def rebalance_expired(turn: ConsumerTurn, member_id: str) -> Decision[None]:
    """A member did not give up in time what others wait for."""
    member = turn.group.members.get(member_id)
    if member is not None and member.progress.state is MemberState.UNREVOKED and member.epoch >= 0:
        turn.fence((member_id,))
    return turn.decide(None)


def _sees_all(_: str) -> bool:
    return True


def resolve_regexes(turn: ConsumerTurn) -> Decision[None]:
    """Which topics match, for every regular expression of the group."""
    group, topics = turn.group, turn.topics
    sees = group.may_describe or _sees_all
    is_other = False
    for regex in sorted(group.subscribed_regexes()):
        try:
            pattern = compile_pattern(regex)
        except InvalidPattern:
            found: frozenset[str] = frozenset()  # of another release that knew more, in a log that we took over
        else:
            found = frozenset(name for name in topics.names if pattern.matches(name) and sees(name))
        known = group.regexes.get(regex)
        is_other = is_other or found != (frozenset() if known is None else known.topics)
        turn.record(RegexSet(group.group_id, regex, ResolvedRegex(found, topics.version, turn.now_ms)))
    if is_other or topics.hash_of(turn.group.subscribed_topics()) != group.metadata_hash:
        turn.bump()
    return turn.decide(None)
