"""Three brokers with an authorizer: rights are the client's, whichever broker it asks."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from typing import Any

import pytest

import moldau
from moldau.security.principals import Principal, serialized
from tests.differential import schema
from tests.differential.peer import Peer
from tests.differential.rights.users import parsed

ADMIN, USER, STRANGER = "127.0.0.1", "127.0.7.1", "127.0.7.2"
EVERYTHING = ("topic:* all", "group:* all", "cluster: all", "txn:* all")
REFUSED_TOPIC, REFUSED_CLUSTER, NOT_CONTROLLER, OK = 29, 31, 41, 0
TOKENS_DISABLED, TOKENS_NOT_ALLOWED = 61, 64
PROPERTIES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",  # until there are ACLs: the first are those of brokers
    "default.replication.factor": 3,
}

Addresses = list[tuple[str, int]]


def ask(address: tuple[str, int], source: str, api: str, version: int, **fields: Any) -> Any:
    with closing(Peer(address, source=source)) as peer:
        return peer.ask(api, version, **fields)


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, f"waited for {what}"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def brokers() -> Iterator[Addresses]:
    rights = [parsed(each, ADMIN) for each in EVERYTHING]
    rights += [parsed(each, USER) for each in ("topic:mine-* all", "group:mine describe")]
    with moldau.run(brokers=3, overrides=PROPERTIES) as cluster:
        addresses = []
        for each in cluster.bootstrap_servers.split(","):
            host, _, port = each.rpartition(":")
            addresses.append((host, int(port)))
        created = ask(addresses[0], ADMIN, "CreateAcls", 3, creations=rights)
        assert {each["error_code"] for each in created["results"]} == {OK}
        for address in addresses:
            until(partial(is_refused, address, STRANGER, "others"), "ACLs on every broker")
        yield addresses


def is_refused(address: tuple[str, int], source: str, topic: str) -> bool:
    return described(address, source, topic) == REFUSED_TOPIC


def is_allowed(address: tuple[str, int], source: str, topic: str) -> bool:
    return not is_refused(address, source, topic)


def described(address: tuple[str, int], source: str, topic: str) -> int:
    topics = [{"name": topic}]
    answer = ask(address, source, "Metadata", 12, topics=topics, allow_auto_topic_creation=False)
    return int(answer["topics"][0]["error_code"])


def create(address: tuple[str, int], source: str, name: str) -> int:
    topics = [{"name": name, "num_partitions": 1, "replication_factor": 3}]
    answer = ask(address, source, "CreateTopics", 7, topics=topics, timeout_ms=15_000)
    return int(answer["topics"][0]["error_code"])


def test_a_forwarded_request_is_judged_as_its_client(brokers: Addresses) -> None:
    for number, address in enumerate(brokers):
        assert create(address, USER, f"mine-{number}") == OK
        assert create(address, USER, f"others-{number}") == REFUSED_TOPIC
        assert create(address, STRANGER, f"mine-{number}-too") == REFUSED_TOPIC


def test_a_topic_that_is_created_by_asking_needs_its_clients_right(brokers: Addresses) -> None:
    for number, address in enumerate(brokers):
        for name, error in ((f"mine-asked-{number}", OK), (f"others-asked-{number}", REFUSED_TOPIC)):
            answer = ask(address, USER, "Metadata", 9, topics=[{"name": name}], allow_auto_topic_creation=True)
            assert answer["topics"][0]["error_code"] == error


def test_brokers_make_the_topic_of_offsets_for_clients_that_may_not(brokers: Addresses) -> None:
    for address in brokers:
        answer = ask(address, USER, "FindCoordinator", 3, key="mine", key_type=0)
        assert answer["error_code"] == OK
    assert described(brokers[0], ADMIN, "__consumer_offsets") == OK


def test_brokers_replicate_with_their_right_and_nobody_else_may(brokers: Addresses) -> None:
    assert create(brokers[0], ADMIN, "mine-replicated") == OK
    fields = {"topics": [{"name": "mine-replicated"}], "allow_auto_topic_creation": False}

    def in_sync() -> bool:
        topic = ask(brokers[0], USER, "Metadata", 12, **fields)["topics"][0]
        return topic["error_code"] == OK and len(topic["partitions"][0]["isr_nodes"]) == 3

    until(in_sync, "replicas")
    partitions = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 100}]
    wanted = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 100, "session_id": 0, "session_epoch": -1}
    topics = [{"topic": "mine-replicated", "partitions": partitions}]
    answer = ask(brokers[0], USER, "Fetch", 12, replica_id=2, topics=topics, **wanted)
    assert answer["responses"][0]["partitions"][0]["error_code"] == REFUSED_TOPIC


def test_an_envelope_of_a_client_is_refused(brokers: Addresses) -> None:
    for address in brokers:
        inside = {"request_data": b"\0" * 20, "request_principal": None, "client_host_address": b"\x7f\0\0\1"}
        assert ask(address, USER, "Envelope", 0, **inside)["error_code"] == REFUSED_CLUSTER


def test_what_is_in_an_envelope_is_judged_by_the_principal_on_it(brokers: Addresses) -> None:
    rule = parsed("topic:alices- create", "*") | {"principal": "User:alice", "resource_pattern_type": 4}
    assert ask(brokers[0], ADMIN, "CreateAcls", 3, creations=[rule])["results"][0]["error_code"] == OK
    assert enveloped_topic(brokers, Principal("User", "alice"), "alices-topic") == OK
    assert enveloped_topic(brokers, Principal("User", "alice"), "bobs-topic") == REFUSED_TOPIC
    assert enveloped_topic(brokers, Principal("User", "bob"), "alices-other-topic") == REFUSED_TOPIC


def test_an_envelope_tells_who_came_by_a_token(brokers: Addresses) -> None:
    """Such a one may ask for no other token; whoever came by a password hears that there are none."""
    fields: dict[str, Any] = {"renewers": [], "max_lifetime_ms": -1}
    for is_by_token, error in ((False, TOKENS_DISABLED), (True, TOKENS_NOT_ALLOWED)):
        principal = Principal("User", "alice", is_by_token)
        assert enveloped(brokers, principal, "CreateDelegationToken", 3, **fields)["error_code"] == error
    for address in brokers:  # by their own connections, which are plain
        assert ask(address, ADMIN, "CreateDelegationToken", 3, **fields)["error_code"] == TOKENS_NOT_ALLOWED


def enveloped_topic(brokers: Addresses, principal: Principal, topic: str) -> int:
    topics = [{"name": topic, "num_partitions": 1, "replication_factor": 1}]
    created = enveloped(brokers, principal, "CreateTopics", 7, topics=topics, timeout_ms=15_000)
    return int(created["topics"][0]["error_code"])


def enveloped(brokers: Addresses, principal: Principal, api: str, version: int, **fields: Any) -> Any:
    """What the controller says to a request that a broker sends on for somebody."""
    body = schema.encode(f"{api}Request", version, fields)
    head = struct.pack(">hhih", schema.api_key(api), version, 5, -1) + b"\0"
    inside = {
        "request_data": head + body,
        "request_principal": serialized(principal),
        "client_host_address": b"\x0a\0\0\1",
    }
    answers = [ask(address, ADMIN, "Envelope", 0, **inside) for address in brokers]
    (answer,) = [each for each in answers if each["error_code"] != NOT_CONTROLLER]
    assert answer["error_code"] == OK
    return schema.decode(f"{api}Response", version, answer["response_data"][5:])


def test_an_acl_that_is_gone_is_gone_on_every_broker(brokers: Addresses) -> None:
    rule = parsed("topic:passing all", USER)
    assert ask(brokers[1], ADMIN, "CreateAcls", 3, creations=[rule])["results"][0]["error_code"] == OK
    for address in brokers:
        until(partial(is_allowed, address, USER, "passing"), "the ACL")
    wanted = {
        "resource_type_filter": 2,
        "resource_name_filter": "passing",
        "pattern_type_filter": 1,
        "principal_filter": None,
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
    }
    deleted = ask(brokers[2], ADMIN, "DeleteAcls", 3, filters=[wanted])["filter_results"][0]
    assert [each["resource_name"] for each in deleted["matching_acls"]] == ["passing"]
    for address in brokers:
        until(partial(is_refused, address, USER, "passing"), "the end of it")
