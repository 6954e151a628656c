"""A client.properties of Java's, as librdkafka takes it."""

from __future__ import annotations

import pytest

from moldau.cli.failures import UsageError
from moldau.cli.java_settings import for_librdkafka

JAAS = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="alice" password="her secret";'
OAUTH = "org.apache.kafka.common.security.oauthbearer"


def test_a_trust_store_a_key_store_and_a_login() -> None:
    assert for_librdkafka(
        {
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": "ca.pem",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": "alice.pem",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": JAAS,
        }
    ) == {
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": "ca.pem",
        "ssl.certificate.location": "alice.pem",
        "ssl.key.location": "alice.pem",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "alice",
        "sasl.password": "her secret",
    }


def test_certificates_in_the_file_itself() -> None:
    given = {"ssl.truststore.certificates": "CA", "ssl.keystore.certificate.chain": "C", "ssl.keystore.key": "K"}
    assert for_librdkafka(given) == {"ssl.ca.pem": "CA", "ssl.certificate.pem": "C", "ssl.key.pem": "K"}


def test_a_delegation_token_is_told_apart_from_a_password() -> None:
    found = for_librdkafka({"sasl.jaas.config": JAAS.replace(";", ' tokenauth="true";')})
    assert found == {"sasl.username": "alice", "sasl.password": "her secret", "sasl.tokenauth": "true"}


def test_an_issuer_of_tokens() -> None:
    given = {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": "https://issuer/token",
        "sasl.login.callback.handler.class": f"{OAUTH}.OAuthBearerLoginCallbackHandler",
        "sasl.oauthbearer.jwt.retriever.class": f"{OAUTH}.ClientCredentialsJwtRetriever",
    }
    by_options = f'{OAUTH}.OAuthBearerLoginModule required clientId="app" clientSecret="her secret" scope="kafka";'
    by_keys = {
        "sasl.oauthbearer.client.credentials.client.id": "app",
        "sasl.oauthbearer.client.credentials.client.secret": "her secret",
        "sasl.oauthbearer.scope": "kafka",
        "sasl.jaas.config": f"{OAUTH}.OAuthBearerLoginModule required;",
    }
    for login in ({"sasl.jaas.config": by_options}, by_keys):
        assert for_librdkafka({**given, **login}) == {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": "https://issuer/token",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": "app",
            "sasl.oauthbearer.client.secret": "her secret",
            "sasl.oauthbearer.scope": "kafka",
        }


def test_librdkafkas_own_settings_stay() -> None:
    own = {"ssl.ca.location": "ca.pem", "ssl.keystore.location": "a.p12", "ssl.keystore.password": "secret"}
    assert for_librdkafka(own) == own
    assert for_librdkafka({**own, "ssl.keystore.type": "PKCS12"}) == own


def test_nobody_verifies_a_name_where_the_file_says_so() -> None:
    given = {"ssl.truststore.certificates": "CA", "ssl.endpoint.identification.algorithm": ""}
    assert for_librdkafka(given)["ssl.endpoint.identification.algorithm"] == "none"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"ssl.truststore.location": "trust.jks"},
            "ssl.truststore.location: this tool reads a trust store only as PEM",
        ),
        ({"sasl.login.callback.handler.class": "com.example.Mine"}, "sasl.login.callback.handler.class: Java classes"),
        ({"ssl.keystore.type": "JKS"}, "ssl.keystore.type=JKS: expected PEM or PKCS12"),
        ({"sasl.jaas.config": 'Module required password="her secret"'}, "sasl.jaas.config: unknown login module"),
    ],
)
def test_what_can_not_be_read_is_said_without_a_secret(given: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError) as raised:
        for_librdkafka(given)
    assert str(raised.value).startswith(message)
    assert "her secret" not in str(raised.value)
