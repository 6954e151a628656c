"""Three brokers that log in to each other with tokens of an issuer, by keys that Apache Kafka takes as well."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.cluster.asking import until
from tests.cluster.load import WAIT_S_MAX
from tests.cluster.test_from_open_to_secured import SECURED, Cluster, is_whole, tls_keys
from tests.node.securing.secured import AUDIENCE, ISSUER, bearer
from tests.security.sasl.issuing import CLIENT, SECRET, running_issuer
from tests.security.sasl.tokens import jwk, jwks

pytestmark = pytest.mark.long

KAFKA = "org.apache.kafka.common.security.oauthbearer"
SESSION_MS = 3_000  # the brokers log in again while the test runs


def token_keys(folder: Path, url: str) -> dict[str, str]:
    keys = folder / "jwks.json"
    keys.write_bytes(jwks(jwk(kid="one")))
    prefix = "listener.name.sasl_ssl.oauthbearer"
    return {
        "security.inter.broker.protocol": SECURED,
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{prefix}.sasl.jaas.config": f"{KAFKA}.OAuthBearerLoginModule required;",
        f"{prefix}.sasl.login.callback.handler.class": f"{KAFKA}.OAuthBearerLoginCallbackHandler",
        f"{prefix}.sasl.server.callback.handler.class": f"{KAFKA}.OAuthBearerValidatorCallbackHandler",
        f"{prefix}.connections.max.reauth.ms": str(SESSION_MS),
        "sasl.oauthbearer.token.endpoint.url": url,
        "sasl.oauthbearer.client.credentials.client.id": CLIENT,
        "sasl.oauthbearer.client.credentials.client.secret": SECRET,
        "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "sasl.oauthbearer.expected.issuer": ISSUER,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:broker;User:alice",
    }


def test_records_are_replicated_by_brokers_with_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(tmp_path)
    keys = tls_keys(tmp_path, cluster.trusted)
    monkeypatch.setenv("SSL_CERT_FILE", os.fspath(cluster.trusted))
    client = {
        "bootstrap.servers": ",".join(f"127.0.0.1:{port}" for port in cluster.ports[SECURED]),
        "security.protocol": SECURED,
        "ssl.ca.location": os.fspath(cluster.trusted),
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": lambda _: bearer("alice"),
        "log_level": 0,
    }
    with running_issuer(tmp_path / "server.pem", lambda: bearer("broker")[0]) as issuer:
        url = issuer.url.replace("localhost", "127.0.0.1")  # whom the brokers' certificate is for
        try:
            for broker_id in range(3):
                cluster.start(broker_id, {**keys, **token_keys(tmp_path, url)}, (SECURED,))
            admin = AdminClient(client)
            until(lambda: is_whole(admin), "not all brokers are there")
            admin.create_topics([NewTopic("t", 3, 3, config={"min.insync.replicas": "3"})])["t"].result(WAIT_S_MAX)
            delivered: list[object] = []
            producer = Producer({**client, "acks": "all"})
            until(lambda: sent(producer, delivered) >= 200, f"not delivered: {delivered[-3:]}")
            assert set(delivered) == {None}
            assert is_whole(admin)
        finally:
            for broker_id in range(3):
                cluster.stop(broker_id)
        assert 3 <= len(issuer.asked) <= 6, "a broker asks once, and its logins share the token"
    assert SECRET not in cluster.output()


def sent(producer: Producer, delivered: list[object]) -> int:
    producer.produce("t", b"value", on_delivery=lambda error, _: delivered.append(error))
    producer.poll(0.05)
    return len(delivered)
