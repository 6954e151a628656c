"""Consumer groups: members, what each has, and how far it is behind."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.responses import Response

from moldau.client.cluster import Cluster
from moldau.client.groups.asking import only
from moldau.client.groups.describing import DEAD, Group, Member, describe_groups
from moldau.client.groups.kinds import CLASSIC, CONSUMER
from moldau.client.groups.lag import GroupLag, PartitionLag, group_lags
from moldau.client.groups.listing import list_groups
from moldau.core.ids import TopicPartition
from moldau.rest.calls import Call, Json, answer
from moldau.rest.problems import not_found
from moldau.rest.v3.resources import Resources, resources_of

TYPES = {CLASSIC: "CLASSIC", CONSUMER: "CONSUMER"}
STATES = {
    "PreparingRebalance": "PREPARING_REBALANCE", "CompletingRebalance": "COMPLETING_REBALANCE", "Stable": "STABLE",
    "Empty": "EMPTY", "Dead": "DEAD", "Assigning": "ASSIGNING", "Reconciling": "RECONCILING",
}  # fmt: skip


async def list_consumer_groups(call: Call) -> Response:
    found = await resources_of(call)

    def ask(cluster: Cluster) -> list[Group]:
        listed = [each.group for each in list_groups(cluster) if each.is_consumer_group and each.type != "Share"]
        return [each for each in describe_groups(cluster, listed).values() if isinstance(each, Group)]

    there = await call.session.ask(ask)
    return await found.listed(
        "KafkaConsumerGroupList", ("consumer-groups",), lambda: (_group(found, each) for each in there)
    )


async def get_consumer_group(call: Call) -> Response:
    return answer(_group(await resources_of(call), await _asked(call)))


async def _asked(call: Call) -> Group:
    group_id = call.name("consumer_group_id")
    group = await call.session.ask(lambda cluster: only(describe_groups(cluster, [group_id])))
    if group.state == DEAD:  # which is how brokers of old say that there is none
        raise not_found("Consumer group", group_id)
    return group


def _group(found: Resources, group: Group) -> Json:
    path = ("consumer-groups", group.id)
    return found.resource(
        "KafkaConsumerGroup",
        path,
        ("consumer-group", group.id),
        consumer_group_id=group.id,
        is_simple=group.type == CLASSIC and not group.protocol,
        partition_assignor=group.assignor or "",
        state=STATES.get(group.state, "UNKNOWN"),
        type=TYPES.get(group.type, "UNKNOWN"),
        is_mixed_consumer_group=group.type == CONSUMER and any(each.is_upgraded is False for each in group.members),
        coordinator=found.link("brokers", group.coordinator.id),
        consumers=found.link(*path, "consumers"),
        lag_summary=found.link(*path, "lag-summary"),
    )


async def list_consumers(call: Call) -> Response:
    found, group = await resources_of(call), await _asked(call)
    data = [_consumer(found, group.id, each) for each in group.members]
    return answer(found.collection("KafkaConsumerList", ("consumer-groups", group.id, "consumers"), data))


async def get_consumer(call: Call) -> Response:
    found, group = await resources_of(call), await _asked(call)
    return answer(_consumer(found, group.id, _member(call, group)))


def _member(call: Call, group: Group) -> Member:
    wanted = call.name("consumer_id")
    member = next((each for each in group.members if each.id == wanted), None)
    if member is None:
        raise not_found("Consumer", wanted)
    return member


def _consumer(found: Resources, group: str, member: Member) -> Json:
    path = ("consumer-groups", group, "consumers", member.id)
    return found.resource(
        "KafkaConsumer",
        path,
        ("consumer-group", group, "consumer", member.id),
        consumer_group_id=group,
        consumer_id=member.id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        assignments=found.link(*path, "assignments"),
    )


async def list_assignments(call: Call) -> Response:
    found, group = await resources_of(call), await _asked(call)
    member = _member(call, group)
    path = ("consumer-groups", group.id, "consumers", member.id, "assignments")
    data = [_assignment(found, group.id, member, each) for each in member.assignment]
    return answer(found.collection("KafkaConsumerAssignmentList", path, data))


async def get_assignment(call: Call) -> Response:
    found, group = await resources_of(call), await _asked(call)
    member = _member(call, group)
    place = TopicPartition(call.name("topic_name"), call.number("partition_id"))
    if place not in member.assignment:
        raise not_found("Assignment", place)
    return answer(_assignment(found, group.id, member, place))


def _assignment(found: Resources, group: str, member: Member, place: TopicPartition) -> Json:
    topic, partition = place.topic, place.partition
    group_path = ("consumer-groups", group)
    return found.resource(
        "KafkaConsumerAssignment",
        (*group_path, "consumers", member.id, "assignments", topic, "partitions", partition),
        ("consumer-group", group, "consumer", member.id, "assignment", topic, "partition", partition),
        consumer_group_id=group,
        consumer_id=member.id,
        topic_name=topic,
        partition_id=partition,
        partition=found.link("topics", topic, "partitions", partition),
        lag=found.link(*group_path, "lags", topic, "partitions", partition),
    )


async def _lags(call: Call) -> tuple[Resources, str, list[PartitionLag]]:
    found, group_id = await resources_of(call), call.name("consumer_group_id")

    def ask(cluster: Cluster) -> GroupLag:
        return only(group_lags(cluster, [group_id]))

    lag = await call.session.ask(ask)
    if lag.group.state == DEAD:
        raise not_found("Consumer group", group_id)
    return found, group_id, [each for each in lag.partitions if each.committed is not None and each.end is not None]


async def get_lag_summary(call: Call) -> Response:
    found, group, lags = await _lags(call)
    if not lags:
        raise not_found("Lag of consumer group", group)
    worst = max(lags, key=lambda each: each.lag or 0)
    member = worst.member
    path = ("consumer-groups", group)
    consumer = ("consumers", member.id) if member else ("consumers",)
    return answer(
        found.resource(
            "KafkaConsumerGroupLagSummary",
            (*path, "lag-summary"),
            ("consumer-group", group, "lag-summary"),
            consumer_group_id=group,
            max_lag_consumer_id=member.id if member else "",
            max_lag_instance_id=member.instance_id if member else None,
            max_lag_client_id=member.client_id if member else "",
            max_lag_topic_name=worst.place.topic,
            max_lag_partition_id=worst.place.partition,
            max_lag=worst.lag,
            total_lag=sum(each.lag or 0 for each in lags),
            max_lag_consumer=found.link(*path, *consumer),
            max_lag_partition=found.link("topics", worst.place.topic, "partitions", worst.place.partition),
        )
    )


async def list_lags(call: Call) -> Response:
    found, group, lags = await _lags(call)
    path = ("consumer-groups", group, "lags")
    return await found.listed(
        "KafkaConsumerLagList", path, lambda: _in_order([_lag(found, group, each) for each in lags])
    )


async def get_lag(call: Call) -> Response:
    place = TopicPartition(call.name("topic_name"), call.number("partition_id"))
    found, group, lags = await _lags(call)
    lag = next((each for each in lags if each.place == place), None)
    if lag is None:
        raise not_found("Lag of", place)
    return answer(_lag(found, group, lag))


def _in_order(lags: Sequence[Json]) -> list[Json]:
    return sorted(lags, key=lambda each: (each["topic_name"], each["partition_id"]))


def _lag(found: Resources, group: str, lag: PartitionLag) -> Json:
    topic, partition, member = lag.place.topic, lag.place.partition, lag.member
    return found.resource(
        "KafkaConsumerLag",
        ("consumer-groups", group, "lags", topic, "partitions", partition),
        ("consumer-group", group, "lag", topic, "partition", partition),
        consumer_group_id=group,
        topic_name=topic,
        partition_id=partition,
        current_offset=lag.offset,
        log_end_offset=lag.end,
        lag=lag.lag,
        consumer_id=member.id if member else "",
        instance_id=member.instance_id if member else None,
        client_id=member.client_id if member else "",
    )
