"""Requests to an embedded broker by our own messages: no client library is loaded for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from moldau.embedded.overrides import as_property

if TYPE_CHECKING:
    from moldau.client.security import ConnectionSecurity
    from moldau.embedded.process import Address
    from moldau.security.starter.clients import Login

CLIENT_ID = "moldau-embedded"
ANSWER_S_MAX = 30.0
CREATE_TOPICS_VERSION = 7
METADATA_VERSION = 12
BROKER_DEFAULT = -1


class RequestFailed(Exception):
    """The broker refused a request; `error` is Kafka's name for the reason, such as TOPIC_ALREADY_EXISTS."""

    def __init__(self, error: str, message: str | None) -> None:
        super().__init__(f"{error}: {message}" if message else error)
        self.error = error


class Seen(NamedTuple):
    """A cluster as one of its brokers describes it."""

    broker_ids: frozenset[int]
    controller_id: int
    leaders: Mapping[int, int]
    """Of the partitions of the topic that was asked about; -1 where nobody leads."""
    in_sync: Mapping[int, frozenset[int]]


def create_topic(
    address: Address,
    name: str,
    *,
    partitions: int | None,
    config: Mapping[str, object],
    replication_factor: int | None = None,
    login: Login | None = None,
) -> None:
    # Imported here because most programs leave topics to their own clients.
    from moldau.core.errors import ErrorCode
    from moldau.wire.messages.create_topics import (
        CreatableTopic,
        CreatableTopicConfig,
        CreateTopicsRequest,
        CreateTopicsResponse,
    )

    topic = CreatableTopic(
        name=name,
        num_partitions=BROKER_DEFAULT if partitions is None else partitions,
        replication_factor=BROKER_DEFAULT if replication_factor is None else replication_factor,
        configs=[CreatableTopicConfig(name=key, value=as_property(value)) for key, value in config.items()],
    )
    request = CreateTopicsRequest(topics=[topic], timeout_ms=int(ANSWER_S_MAX * 1_000))
    (result,) = _ask(address, request, CreateTopicsResponse, CREATE_TOPICS_VERSION, login).topics
    if result.error_code:
        raise RequestFailed(ErrorCode(result.error_code).name, result.error_message)


def set_password(address: Address, login: Login, *, user: str, password: str) -> None:
    """Of a user with SCRAM, who is made if need be."""
    import os

    from moldau.core.errors import ErrorCode
    from moldau.security.sasl.scram.credential import ITERATIONS_MIN, ScramMechanism
    from moldau.security.sasl.scram.keys import salted_password
    from moldau.wire.messages.alter_user_scram_credentials import (
        AlterUserScramCredentialsRequest,
        AlterUserScramCredentialsResponse,
        ScramCredentialUpsertion,
    )

    kind, salt = ScramMechanism.SHA_512, os.urandom(32)
    salted = salted_password(kind, password, salt, ITERATIONS_MIN)
    wanted = ScramCredentialUpsertion(user, kind, ITERATIONS_MIN, salt, salted)
    request = AlterUserScramCredentialsRequest(upsertions=[wanted])
    (result,) = _ask(address, request, AlterUserScramCredentialsResponse, 0, login).results
    if result.error_code:
        raise RequestFailed(ErrorCode(result.error_code).name, result.error_message)


def describe(address: Address, topic: str | None, login: Login | None = None) -> Seen:
    from moldau.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

    topics = [] if topic is None else [MetadataRequestTopic(name=topic)]
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    response = _ask(address, request, MetadataResponse, METADATA_VERSION, login)
    rows = [row for found in response.topics for row in found.partitions]
    return Seen(
        frozenset(broker.node_id for broker in response.brokers),
        response.controller_id,
        {row.partition_index: row.leader_id for row in rows},
        {row.partition_index: frozenset(row.isr_nodes) for row in rows},
    )


def _ask(address: Address, request: Any, response: type[Any], version: int, login: Login | None) -> Any:
    """One request on a connection of its own."""
    from moldau.client.connection import Connection

    security = None if login is None else _security(login.librdkafka(f"{address.host}:{address.port}"))
    connection = Connection(address.host, address.port, client_id=CLIENT_ID, timeout_s=ANSWER_S_MAX, security=security)
    try:
        return connection.ask_as(request, response, version)
    finally:
        connection.close()


def _security(settings: Mapping[str, Any]) -> ConnectionSecurity | None:
    from moldau.client.security import security_of

    return security_of(tuple(settings.items()))
