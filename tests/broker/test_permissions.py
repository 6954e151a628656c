"""librdkafka beside an authorizer: ACLs come and go by its admin client, and its other clients feel them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

import moldau

PROPERTIES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "group.initial.rebalance.delay.ms": "0",
}
ANY_ACL = (ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY)
WAIT_S = 20.0


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with moldau.run(overrides=PROPERTIES) as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap})


def topic(admin: AdminClient, name: str) -> str:
    admin.create_topics([NewTopic(name, 1)])[name].result()
    return name


def denied(name: str, operation: AclOperation, kind: ResourceType = ResourceType.TOPIC) -> AclBinding:
    pattern = ResourcePatternType.LITERAL
    return AclBinding(kind, name, pattern, "User:ANONYMOUS", "*", operation, AclPermissionType.DENY)


def allowed(name: str, operation: AclOperation, kind: ResourceType = ResourceType.TOPIC) -> AclBinding:
    pattern = ResourcePatternType.LITERAL
    return AclBinding(kind, name, pattern, "User:ANONYMOUS", "127.0.0.1", operation, AclPermissionType.ALLOW)


def create(admin: AdminClient, *acls: AclBinding) -> None:
    for made in admin.create_acls(list(acls)).values():
        made.result()


def delete(admin: AdminClient, acl: AclBinding) -> list[AclBinding]:
    wanted = AclBindingFilter(
        acl.restype, acl.name, acl.resource_pattern_type, acl.principal, acl.host, acl.operation, acl.permission_type
    )
    return list(admin.delete_acls([wanted])[wanted].result())


def of(admin: AdminClient, name: str) -> list[AclBinding]:
    return list(admin.describe_acls(AclBindingFilter(ResourceType.TOPIC, name, *ANY_ACL)).result())


def produced(bootstrap: str, name: str) -> KafkaError | None:
    errors: list[KafkaError | None] = []

    def note(error: KafkaError | None, _: Message) -> None:
        errors.append(error)

    producer = Producer({"bootstrap.servers": bootstrap, "message.timeout.ms": 10_000})
    producer.produce(name, b"value", callback=note)
    producer.flush(WAIT_S)
    return errors[0]


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "it takes too long"


def test_acls_are_there_from_their_creation_to_their_deletion(admin: AdminClient) -> None:
    one, other = allowed("acls", AclOperation.READ), allowed("acls", AclOperation.WRITE)
    create(admin, one, other)
    create(admin, one)
    assert set(of(admin, "acls")) == {one, other}
    assert delete(admin, one) == [one]
    assert of(admin, "acls") == [other], "the others stay"


def test_a_producer_needs_write(admin: AdminClient, bootstrap: str) -> None:
    name, rule = topic(admin, "written"), denied("written", AclOperation.WRITE)
    assert produced(bootstrap, name) is None
    create(admin, allowed(name, AclOperation.ALL), rule)
    error = produced(bootstrap, name)
    assert error is not None
    assert error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    delete(admin, rule)
    assert produced(bootstrap, name) is None


def test_a_consumer_that_loses_its_right_gets_no_more_records(admin: AdminClient, bootstrap: str) -> None:
    name = topic(admin, "read")
    produced(bootstrap, name)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "readers", "auto.offset.reset": "earliest"})
    try:
        consumer.assign([TopicPartition(name, 0, 0)])
        first = consumer.poll(WAIT_S)
        assert first is not None
        assert first.error() is None
        create(admin, allowed(name, AclOperation.ALL), denied(name, AclOperation.READ))

        def refused() -> bool:
            message = consumer.poll(0.2)
            error = None if message is None else message.error()
            return error is not None and error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED

        until(refused)
        assert produced(bootstrap, name) is None
        message = consumer.poll(1.0)
        assert message is None or message.error() is not None
    finally:
        consumer.close()


def test_a_group_needs_read(admin: AdminClient, bootstrap: str) -> None:
    name, group = topic(admin, "grouped"), "closed"
    kind = ResourceType.GROUP
    create(admin, denied(group, AclOperation.READ, kind), allowed(group, AclOperation.DESCRIBE, kind))
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"})
    try:
        with pytest.raises(KafkaException) as refused:
            consumer.commit(offsets=[TopicPartition(name, 0, 1)], asynchronous=False)
        assert refused.value.args[0].code() == KafkaError.GROUP_AUTHORIZATION_FAILED
    finally:
        consumer.close()


def test_lists_leave_out_what_the_client_may_not_describe(admin: AdminClient) -> None:
    topic(admin, "listed"), topic(admin, "hidden")
    assert {"listed", "hidden"} <= admin.list_topics(timeout=WAIT_S).topics.keys()
    create(admin, denied("hidden", AclOperation.DESCRIBE))
    assert "hidden" not in admin.list_topics(timeout=WAIT_S).topics
    error = admin.list_topics("hidden", timeout=WAIT_S).topics["hidden"].error
    assert error is not None
    assert error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_regular_expression_finds_only_what_its_member_may_describe(
    admin: AdminClient, bootstrap: str, protocol: str
) -> None:
    seen, secret = topic(admin, f"{protocol}-regex-seen"), topic(admin, f"{protocol}-regex-secret")
    create(admin, denied(secret, AclOperation.DESCRIBE))
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": f"{protocol}-regexes", "group.protocol": protocol})
    try:
        consumer.subscribe([f"^{protocol}-regex-.*"])

        def assigned() -> bool:
            consumer.poll(0.2)
            return bool(consumer.assignment())

        until(assigned)
        assert {each.topic for each in consumer.assignment()} == {seen}
    finally:
        consumer.close()
