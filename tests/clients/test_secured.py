"""Every client over every kind of secured listener and every mechanism, as users that may do only this."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from tests.clients.drivers import ClientError
from tests.clients.secured_brokers import Listeners, running_listeners
from tests.clients.sessions import SESSIONS, Login, Sessions
from tests.node.securing.secured import (
    MECHANISMS,
    PASSWORD_MECHANISMS,
    PASSWORDS,
    PROTOCOLS,
    REAUTHENTICATION_MS,
    bearer,
)

pytestmark = pytest.mark.xdist_group("secured-clients")  # one process starts what they share

# What a client calls it when it may not come in. kafka-python drops an answer that comes together with the end of the
# connection, which is a race on any broker; then it only says that it could not connect.
WRONG_PASSWORD = {
    "confluent": {"_AUTHENTICATION"},
    "kafka-python": {"SaslAuthenticationFailedError", "KafkaTimeoutError"},
    "aiokafka": {"SaslAuthenticationFailed"},
    "kafkajs": {"KafkaJSSASLAuthenticationError"},
    "franz-go": {"SASL_AUTHENTICATION_FAILED"},
    "java": {"SaslAuthenticationException"},
    "java-3.9": {"SaslAuthenticationException"},
}
# Three clients take the answer to a token, which says what is wrong with it, for nonsense or for success. What two of
# them ask next ends the connection; Apache Kafka answers it before, in the form of what was asked.
WRONG_TOKEN = WRONG_PASSWORD | {
    "aiokafka": {"KafkaConnectionError", "StaleMetadata"},
    "kafkajs": {"KafkaJSConnectionClosedError", "ILLEGAL_SASL_STATE"},
    "franz-go": {"*errors.errorString"},
}
NO_CERTIFICATE = {
    "confluent": {"_TRANSPORT", "_SSL"},
    "kafka-python": {"KafkaTimeoutError"},
    "aiokafka": {"KafkaConnectionError", "SSLError"},
    "kafkajs": {"KafkaJSConnectionError"},
    "franz-go": {"*tls.permanentError"},
    "java": {"SslAuthenticationException"},
    "java-3.9": {"SslAuthenticationException"},
}
NOT_ALLOWED = {
    "confluent": {"TOPIC_AUTHORIZATION_FAILED"},
    "kafka-python": {"TopicAuthorizationFailedError"},
    "aiokafka": {"TopicAuthorizationFailedError"},
    "kafkajs": {"TOPIC_AUTHORIZATION_FAILED"},
    "franz-go": {"TOPIC_AUTHORIZATION_FAILED"},
    "java": {"TopicAuthorizationException"},
    "java-3.9": {"TopicAuthorizationException"},
}
VALUES = [str(number).rjust(3_000, ".") for number in range(60)]  # more than a record of TLS


@pytest.fixture(scope="module")
def secured(broker_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listeners]:
    """Alice may by her name, and Carol by her certificate's; Bob is known and may nothing."""
    more = {
        "listener_name_ssl_ssl_client_auth": "required",
        "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super_users": "User:ANONYMOUS",
        "group_initial_rebalance_delay_ms": "0",
    }
    if broker_kind not in ("moldau", "apache"):
        pytest.skip("a broker of its own is started")
    with running_listeners(broker_kind, tmp_path_factory.mktemp("keys"), **more) as running:
        allow(running.admin(), "User:alice", "User:carol")
        yield running


def allow(admin: AdminClient, *principals: str) -> None:
    rights = [
        (ResourceType.TOPIC, AclOperation.WRITE),
        (ResourceType.TOPIC, AclOperation.READ),
        (ResourceType.GROUP, AclOperation.READ),
    ]
    bindings = [
        AclBinding(kind, "secured-", ResourcePatternType.PREFIXED, who, "*", operation, AclPermissionType.ALLOW)
        for who in principals
        for kind, operation in rights
    ]
    for done in admin.create_acls(bindings).values():
        done.result(20)


@pytest.fixture(scope="module")
def sessions() -> Iterator[Sessions]:
    started = Sessions()
    yield started
    started.close()


@pytest.fixture
def topic(secured: Listeners) -> str:
    return new_topic(secured)


def new_topic(secured: Listeners) -> str:
    name = f"secured-{uuid.uuid4().hex[:12]}"
    secured.create_topic(name)
    return name


def with_certificate(secured: Listeners) -> Login:
    keys = secured.keys
    return Login(secured.addresses["SSL"], "SSL", str(keys.trusted), certificate=str(keys.client))


def logged_in(secured: Listeners, protocol: str, mechanism: str, user: str = "alice") -> Login:
    login = Login(secured.addresses[protocol], protocol, str(secured.keys.trusted), mechanism)
    if mechanism == "OAUTHBEARER":
        return replace(login, token=bearer(user)[0])
    return replace(login, user=user, password=PASSWORDS[user])


@pytest.mark.parametrize("client", SESSIONS)
def test_a_certificate_lets_a_client_in(client: str, sessions: Sessions, secured: Listeners, topic: str) -> None:
    assert sessions.hold(client, with_certificate(secured), topic, [VALUES]) == VALUES


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("client", SESSIONS)
def test_clients_log_in(
    client: str, protocol: str, mechanism: str, sessions: Sessions, secured: Listeners, topic: str
) -> None:
    assert sessions.hold(client, logged_in(secured, protocol, mechanism), topic, [VALUES]) == VALUES


@pytest.mark.parametrize("mechanism", PASSWORD_MECHANISMS)
@pytest.mark.parametrize("client", SESSIONS)
def test_a_wrong_password_is_an_error_of_authentication(
    client: str, mechanism: str, sessions: Sessions, secured: Listeners, topic: str
) -> None:
    login = replace(logged_in(secured, "SASL_SSL", mechanism), password="a guess")
    with pytest.raises(ClientError) as refused:
        sessions.hold(client, login, topic, [["never"]])
    assert refused.value.name in WRONG_PASSWORD[client], refused.value


@pytest.mark.parametrize("client", SESSIONS)
def test_a_token_of_another_issuer_is_an_error_of_authentication(
    client: str, sessions: Sessions, secured: Listeners, topic: str
) -> None:
    token = bearer("alice", iss="https://elsewhere")[0]
    login = replace(logged_in(secured, "SASL_SSL", "OAUTHBEARER"), token=token)
    with pytest.raises(ClientError) as refused:
        sessions.hold(client, login, topic, [["never"]])
    assert refused.value.name in WRONG_TOKEN[client], refused.value


@pytest.mark.parametrize("client", SESSIONS)
def test_without_a_certificate_nobody_gets_in(client: str, sessions: Sessions, secured: Listeners, topic: str) -> None:
    login = replace(with_certificate(secured), certificate=None)
    with pytest.raises(ClientError) as refused:
        sessions.hold(client, login, topic, [["never"]])
    assert refused.value.name in NO_CERTIFICATE[client], refused.value


@pytest.mark.parametrize("client", SESSIONS)
def test_who_may_nothing_hears_that(client: str, sessions: Sessions, secured: Listeners, topic: str) -> None:
    with pytest.raises(ClientError) as refused:
        sessions.hold(client, logged_in(secured, "SASL_SSL", "SCRAM-SHA-512", "bob"), topic, [["never"]])
    assert refused.value.name in NOT_ALLOWED[client], refused.value


def test_a_session_outlives_its_logins(sessions: Sessions, secured: Listeners) -> None:
    """All clients at a time: each waits most of its time."""
    login, batches = logged_in(secured, "SASL_SSL", "PLAIN"), [[str(number)] for number in range(12)]
    pause_ms = 2 * REAUTHENTICATION_MS // len(batches)

    def hold(client: str) -> list[str]:
        return sessions.hold(client, login, new_topic(secured), batches, pause_ms=pause_ms)

    with ThreadPoolExecutor(len(SESSIONS)) as pool:
        read = dict(zip(SESSIONS, pool.map(hold, SESSIONS), strict=True))
    assert read == {client: [value for (value,) in batches] for client in SESSIONS}
