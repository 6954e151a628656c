"""Classic members beside those of the consumer protocol, as the requests that they send to one shard."""

from __future__ import annotations

from typing import Any

from moldau.core.errors import ErrorCode
from moldau.groups.classic.consumer_protocol import (
    VERSION_MAX,
    Assigned,
    Subscription,
    TopicPartitions,
    read_assignment,
)
from moldau.groups.classic.group import Group
from moldau.groups.classic.members import Joining, Protocol
from moldau.groups.classic.membership import Leaving, Syncing
from moldau.groups.schemas import SHORT
from moldau.wire.codec import encode
from tests.groups.consumer.worlds import GROUP, ConsumerWorld

SESSION_MS = 10_000
REBALANCE_MS = 30_000
TOPIC = "orders"


def subscription(*owned: int, topics: tuple[str, ...] = (TOPIC,), version: int = VERSION_MAX) -> bytes:
    """What a classic consumer joins with; an eager one owns nothing when it does."""
    said = Subscription(topics=list(topics), owned_partitions=[TopicPartitions(TOPIC, list(owned))] if owned else [])
    return SHORT.pack(version) + encode(said, version)


def assignment(*partitions: int, user_data: bytes | None = None) -> bytes:
    given = Assigned([TopicPartitions(TOPIC, list(partitions))] if partitions else [], user_data)
    return SHORT.pack(VERSION_MAX) + encode(given, VERSION_MAX)


def partitions_of(given: bytes) -> set[int]:
    return {partition for each in read_assignment(given).partitions for partition in each.partitions}


def joining(member_id: str, *owned: int, **values: Any) -> Joining:
    defaults = {
        "group_id": GROUP,
        "member_id": member_id,
        "new_member_id": f"new-{member_id}",
        "session_timeout_ms": SESSION_MS,
        "rebalance_timeout_ms": REBALANCE_MS,
        "protocol_type": "consumer",
        "protocols": (Protocol("range", subscription(*owned)),),
        "must_know_id": False,
    }
    return Joining(**{**defaults, **values})


class MixedWorld:
    """Members of both kinds. `world` is for those of the consumer protocol, and for time."""

    def __init__(self, world: ConsumerWorld | None = None) -> None:
        self.world = world or ConsumerWorld()

    @property
    def classic(self) -> Group:
        return self.world.shard.groups[GROUP]

    def join(self, member_id: str, *owned: int, **values: Any) -> Any:
        request = joining(member_id, *owned, **values)
        return self.world.do(lambda shard, now_ms: shard.decide_join(request, now_ms))

    def sync(self, member_id: str, generation: int, given: dict[str, bytes] | None = None, **values: Any) -> Any:
        request = Syncing(group_id=GROUP, member_id=member_id, generation=generation, assignments=given or {}, **values)
        return self.world.do(lambda shard, now_ms: shard.decide_sync(request, now_ms))

    def heartbeat(self, member_id: str, generation: int, instance_id: str | None = None) -> ErrorCode:
        error: ErrorCode = self.world.do(
            lambda shard, now_ms: shard.decide_heartbeat(
                GROUP, member_id, generation, instance_id=instance_id, now_ms=now_ms
            )
        )
        return error

    def leave(self, *member_ids: str) -> list[ErrorCode]:
        leaving = [Leaving(member_id) for member_id in member_ids]
        errors: list[ErrorCode] = self.world.do(lambda shard, now_ms: shard.decide_leave(GROUP, leaving, now_ms))
        return errors

    def released(self, kind: str, member_id: str) -> Any:
        return self.world.released.pop((kind, GROUP, member_id))

    def stand(self, **given: bytes) -> None:
        """A stable classic group of these members; the first one leads."""
        first, *others = given
        for member_id in given:
            self.join("", new_member_id=member_id)
        self.world.pass_time(self.world.shard.limits.initial_rebalance_delay_ms * 2)
        generation = self.classic.generation
        for member_id in others:
            self.sync(member_id, generation)
        self.sync(first, generation, given)
        self.world.released.clear()

    def rejoin(self, member_id: str, *owned: int, **values: Any) -> tuple[int, set[int]]:
        """Both steps; gives the generation and what the member has."""
        joined = self.join(member_id, *owned, **values)
        assert joined.error_code == ErrorCode.NONE
        synced = self.sync(joined.member_id, joined.generation_id, instance_id=values.get("instance_id"))
        assert synced.error_code == ErrorCode.NONE
        return joined.generation_id, partitions_of(synced.assignment)
