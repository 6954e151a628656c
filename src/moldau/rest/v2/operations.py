"""v2's operations."""

from __future__ import annotations

from collections.abc import Sequence

from moldau.rest.consuming.instances import Format
from moldau.rest.operations import ANYTHING, Answer, Operation, Parameter
from moldau.rest.v2 import consumers, producing, topics
from moldau.rest.v2.media_types import BY_FORMAT
from moldau.web.logins import Action
from moldau.web.negotiation import JSON, REST_V2

READ, WRITE = Action.READ, Action.WRITE
TYPES = (REST_V2, JSON)
TOPIC = "/topics/{topic_name}"
PARTITION = f"{TOPIC}/partitions/{{partition_id}}"
INSTANCE = "/consumers/{group}/instances/{instance}"
INT32 = {"type": "integer", "minimum": -(1 << 31), "maximum": (1 << 31) - 1}


def _get(path: str, answer: Answer, schema: str, summary: str, *, of: str = "") -> Operation:
    return Operation(
        method="GET", path=path, answer=answer, summary=summary, action=READ, of=of, success={200: schema},
        answer_types=TYPES, errors=(406,),
    )  # fmt: skip


def _produce(path: str, answer: Answer) -> Operation:
    return Operation(
        method="POST", path=path, answer=answer, summary="Produce records", action=WRITE, of="topic_name",
        body="ProduceRequestV2", body_types=tuple(BY_FORMAT.values()), success={200: "ProduceResponseV2"},
        answer_types=TYPES, errors=(406, 415),
    )  # fmt: skip


def _instance(path: str, answer: Answer, summary: str, body: str) -> Operation:
    return Operation(
        method="POST", path=f"{INSTANCE}/{path}", answer=answer, summary=summary, action=READ, of="group",
        body=body, body_types=TYPES, errors=(406, 409, 415),
    )  # fmt: skip


def _consumers() -> list[Operation]:
    subscription = f"{INSTANCE}/subscription"
    return [
        Operation(
            method="POST", path="/consumers/{group}", answer=consumers.create_instance, action=READ, of="group",
            summary="Make a consumer instance", body="NewInstance", body_types=TYPES, is_body_needed=False,
            success={200: "InstanceMade"}, answer_types=TYPES, errors=(406, 409, 415),
        ),
        Operation(
            method="DELETE", path=INSTANCE, answer=consumers.delete_instance, action=READ, of="group",
            summary="Delete a consumer instance",
        ),
        _instance("subscription", consumers.subscribe, "Subscribe to topics", "Subscription"),
        _get(subscription, consumers.get_subscription, "Subscribed", "Get the subscription", of="group"),
        Operation(
            method="DELETE", path=subscription, answer=consumers.unsubscribe, action=READ, of="group",
            summary="Unsubscribe",
        ),
        _instance("assignments", consumers.assign, "Take partitions", "Places"),
        _get(f"{INSTANCE}/assignments", consumers.get_assignment, "Places", "Get the partitions", of="group"),
        _instance("positions", consumers.seek, "Read on at offsets or times", "Positions"),
        _instance("positions/beginning", consumers.seek_to_beginning, "Read on at the beginning", "Places"),
        _instance("positions/end", consumers.seek_to_end, "Read on at the end", "Places"),
        Operation(
            method="POST", path=f"{INSTANCE}/offsets", answer=consumers.commit_offsets, action=READ, of="group",
            summary="Commit offsets: of the last records read, or of all that were read", body="OffsetsV2",
            body_types=TYPES, is_body_needed=False, parameters=(Parameter("async", {"type": "string"}),),
            success={200: "OffsetsV2"}, answer_types=TYPES, errors=(406, 409, 415),
        ),
        Operation(
            method="GET", path=f"{INSTANCE}/offsets", answer=consumers.committed_offsets, action=READ, of="group",
            summary="Get committed offsets", body="Places", body_types=TYPES, success={200: "OffsetsV2"},
            answer_types=TYPES, errors=(406, 409, 415),
        ),
        Operation(
            method="GET", path=f"{INSTANCE}/records", answer=consumers.read_records, action=READ, of="group",
            summary="Read records", parameters=(Parameter("timeout", INT32), Parameter("max_bytes", INT32)),
            success={200: "RecordsV2"}, answer_types=(*TYPES, *(BY_FORMAT[each] for each in Format)),
            errors=(406, 408, 409),
        ),
    ]  # fmt: skip


def operations() -> Sequence[Operation]:
    of = "topic_name"
    return [
        _get("/topics", topics.list_topics, "TopicNames", "List topics", of=ANYTHING),
        _get(TOPIC, topics.get_topic, "TopicV2", "Get a topic", of=of),
        _produce(TOPIC, producing.produce),
        _get(f"{TOPIC}/partitions", topics.list_partitions, "PartitionsV2", "List partitions", of=of),
        _get(PARTITION, topics.get_partition, "PartitionV2", "Get a partition", of=of),
        _produce(PARTITION, producing.produce_to_partition),
        _get(f"{PARTITION}/offsets", topics.get_offsets, "PartitionOffsetsV2", "Get offsets", of=of),
        _get("/brokers", topics.list_brokers, "BrokersV2", "List brokers"),
        *_consumers(),
    ]
