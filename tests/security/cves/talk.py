"""Clients of the secured broker, byte by byte."""

from __future__ import annotations

from typing import Any

from moldau.core.errors import ErrorCode
from moldau.security.acls.vocabulary import AclOperation, PermissionType, ResourceType
from moldau.wire.messages import CreateAclsRequest, CreateTopicsRequest, SaslAuthenticateRequest, SaslHandshakeRequest
from moldau.wire.messages.create_acls import AclCreation
from moldau.wire.messages.create_topics import CreatableTopic
from tests.hostile.attacker import Attacker
from tests.node.securing.secured import PASSWORDS, Secured

HANDSHAKE, AUTHENTICATE = 1, 2  # versions


def connected(secured: Secured, protocol: str = "SASL_PLAINTEXT") -> Attacker:
    found = secured.broker.addresses[protocol]
    return Attacker((found.host, found.port))


def admin(secured: Secured) -> Attacker:
    return connected(secured, "PLAINTEXT")


def logged_in(secured: Secured, user: str = "alice") -> Attacker:
    client = connected(secured)
    assert begin(client, "PLAIN", f"\0{user}\0{PASSWORDS[user]}".encode()).error_code == ErrorCode.NONE
    return client


def begin(client: Attacker, mechanism: str, token: bytes) -> Any:
    """The answer to the first message of an exchange."""
    assert client.ask(SaslHandshakeRequest(mechanism), HANDSHAKE).error_code == ErrorCode.NONE
    return go_on(client, token)


def go_on(client: Attacker, token: bytes) -> Any:
    return client.ask(SaslAuthenticateRequest(token), AUTHENTICATE)


def create_topics(secured: Secured, *names: str) -> None:
    topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
    with admin(secured) as client:
        answer = client.ask(CreateTopicsRequest(topics=topics, timeout_ms=10_000), 7)
    assert {each.error_code for each in answer.topics} == {ErrorCode.NONE}


def acl(
    operation: AclOperation, kind: ResourceType, name: str, *, user: str = "alice", allow: bool = True
) -> AclCreation:
    permission = PermissionType.ALLOW if allow else PermissionType.DENY
    return AclCreation(int(kind), name, 3, f"User:{user}", "*", int(operation), int(permission))


def create_acls(secured: Secured, *creations: AclCreation) -> None:
    with admin(secured) as client:
        answer = client.ask(CreateAclsRequest(creations=list(creations)), 3)
    assert {each.error_code for each in answer.results} == {ErrorCode.NONE}
