"""Logins of clients as they are: librdkafka, aiokafka and kafka-python, over a socket."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from aiokafka.client import AIOKafkaClient
from aiokafka.errors import KafkaError
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from moldau.core.clock import SystemClock
from moldau.security.principals import Principal
from moldau.security.sasl.login import LoginSettings
from moldau.security.sasl.mechanism import SaslServer
from moldau.security.sasl.oauthbearer.jwks import JwtValidator, read_jwks
from moldau.security.sasl.oauthbearer.server import OAuthBearerServer
from moldau.security.sasl.plain import PlainServer
from moldau.security.sasl.scram.credential import ScramMechanism
from moldau.security.sasl.scram.server import ScramServer
from tests.security.sasl.exchanges import FAKES, PASSWORDS, Credentials
from tests.security.sasl.login_server import LoginServer
from tests.security.sasl.test_plain import Passwords
from tests.security.sasl.tokens import jwk, jwks, token

PASSWORD_MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


def scram(mechanism: ScramMechanism) -> Callable[[], SaslServer]:
    return lambda: ScramServer(mechanism, Credentials(), FAKES, "fyko+d2lbbFgONRv9qkxdawL")


MECHANISMS: Mapping[str, Callable[[], SaslServer]] = {
    "PLAIN": lambda: PlainServer(Passwords()),
    "SCRAM-SHA-256": scram(ScramMechanism.SHA_256),
    "SCRAM-SHA-512": scram(ScramMechanism.SHA_512),
    "OAUTHBEARER": lambda: OAuthBearerServer(JwtValidator(read_jwks(jwks(jwk())))),
}
SETTINGS = LoginSettings(MECHANISMS)


def librdkafka(server: LoginServer, mechanism: str, **configuration: Any) -> AdminClient:
    return AdminClient(
        {
            "bootstrap.servers": server.address,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "log_level": 0,
            **configuration,
        }
    )


def as_user(user: str, password: str) -> dict[str, str]:
    return {"sasl.username": user, "sasl.password": password}


@pytest.mark.parametrize("user", PASSWORDS)
@pytest.mark.parametrize("mechanism", PASSWORD_MECHANISMS)
def test_librdkafka_logs_in(mechanism: str, user: str) -> None:
    with LoginServer(SETTINGS) as server:
        client = librdkafka(server, mechanism, **as_user(user, PASSWORDS[user]))
        assert client.list_topics(timeout=20).cluster_id == "logins"
    assert (set(server.principals), server.failures) == ({Principal("User", user)}, [])


@pytest.mark.parametrize(("user", "password"), [("alice", "wrong"), ("nobody", "alice-secret")])
@pytest.mark.parametrize("mechanism", PASSWORD_MECHANISMS)
def test_librdkafka_is_refused(mechanism: str, user: str, password: str) -> None:
    with LoginServer(SETTINGS) as server:
        heard: list[str] = []
        client = librdkafka(
            server, mechanism, error_cb=lambda error: heard.append(error.str()), **as_user(user, password)
        )
        with pytest.raises(KafkaException):
            client.list_topics(timeout=1.5)
        client.poll(0.1)
    assert server.failures
    assert not server.principals
    told = (
        "Invalid username or password"
        if mechanism == "PLAIN"
        else f"due to invalid credentials with SASL mechanism {mechanism}"
    )
    assert any(told in each for each in heard), heard


def test_librdkafka_logs_in_with_a_token() -> None:
    now_s = SystemClock().now_ms() // 1_000

    def provide(_: str) -> tuple[str, float, str, dict[str, str]]:
        return token(iat=now_s, exp=now_s + 600), now_s + 600, "alice", {"logicalCluster": "lkc-1"}

    with LoginServer(SETTINGS) as server:
        client = librdkafka(server, "OAUTHBEARER", oauth_cb=provide)
        assert client.list_topics(timeout=20).cluster_id == "logins"
    assert set(server.principals) == {Principal("User", "alice")}


def test_librdkafka_logs_in_again_before_its_session_ends() -> None:
    settings = replace(SETTINGS, connections_max_reauth_ms={"SCRAM-SHA-256": 3_000})
    with LoginServer(settings) as server:
        client = librdkafka(
            server,
            "SCRAM-SHA-256",
            **as_user("alice", PASSWORDS["alice"]),
            **{"topic.metadata.refresh.interval.ms": 200},
        )
        deadline_s = time.monotonic() + 30
        while not server.reauthenticated.is_set() and time.monotonic() < deadline_s:
            client.list_topics(timeout=20)
            server.reauthenticated.wait(0.2)
        assert client.list_topics(timeout=20).cluster_id == "logins"
    assert server.reauthenticated.is_set()
    assert (set(server.principals), server.failures) == ({Principal("User", "alice")}, [])


async def aiokafka_metadata(server: LoginServer, mechanism: str, user: str, password: str) -> None:
    client = AIOKafkaClient(
        bootstrap_servers=server.address,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism=mechanism,
        sasl_plain_username=user,
        sasl_plain_password=password,
    )
    try:
        await client.bootstrap()
    finally:
        await client.close()


@pytest.mark.parametrize("handshake_version", [0, 1])
@pytest.mark.parametrize("mechanism", PASSWORD_MECHANISMS)
def test_aiokafka_logs_in_with_and_without_bare_tokens(mechanism: str, handshake_version: int) -> None:
    with LoginServer(SETTINGS, handshake_version) as server:
        asyncio.run(aiokafka_metadata(server, mechanism, "alice", PASSWORDS["alice"]))
        assert set(server.principals) == {Principal("User", "alice")}
        with pytest.raises((KafkaError, ValueError)):
            asyncio.run(aiokafka_metadata(server, mechanism, "alice", "wrong"))
    assert set(server.principals) == {Principal("User", "alice")}
    assert server.failures
    assert (server.raw_tokens > 0) == (handshake_version == 0)


@pytest.mark.parametrize("mechanism", PASSWORD_MECHANISMS)
def test_kafka_python_logs_in(mechanism: str) -> None:
    """In a process of its own: it is imported with warnings, which are errors here."""
    program = (
        "import sys; from kafka import KafkaAdminClient\n"
        "client = KafkaAdminClient(bootstrap_servers=sys.argv[1], security_protocol='SASL_PLAINTEXT',"
        " sasl_mechanism=sys.argv[2], sasl_plain_username='alice', sasl_plain_password=sys.argv[3])\n"
        "client.close()"
    )
    with LoginServer(SETTINGS) as server:
        command = [sys.executable, "-W", "ignore", "-c", program, server.address, mechanism, PASSWORDS["alice"]]
        finished = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert finished.returncode == 0, finished.stderr
    assert (set(server.principals), server.failures) == ({Principal("User", "alice")}, [])
