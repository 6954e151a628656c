"""The fast way of reading and writing over TLS and SASL, at a broker that wants both."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Consumer

import moldau
from moldau.client.security import ClientSettings, can_secure, security_of
from moldau.core.ids import TopicPartition
from moldau.spark.clients.broker_connection import BrokerConnection
from moldau.spark.clients.librdkafka import ANSWER_S_MAX, NoAnswer
from moldau.spark.clients.plain_brokers import addresses_of
from moldau.spark.offsets.bounds import OffsetRange
from moldau.spark.options import sink_options
from moldau.spark.reading.fetching import LeftToLibrary, can_fetch, fetch_range
from moldau.spark.writing.plain_delivery import can_send, write_plainly
from moldau.spark.writing.rows_to_records import to_records
from moldau.wire.messages.metadata import MetadataRequest, MetadataResponse
from tests.node.securing.secured import AUDIENCE, bearer
from tests.security.sasl.issuing import CLIENT, SECRET, running_issuer
from tests.security.sasl.tokens import jwk, jwks
from tests.security.tls.conftest import world
from tests.security.tls.world import World, make_world

__all__ = ["world"]

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
ROWS = 5_000
OTHER = "other.pem"
SESSION_MS = 1_200  # a broker lets nobody renew one twice in a second


@dataclass(frozen=True)
class Secured:
    broker: moldau.EmbeddedBroker
    client: dict[str, str]

    def settings(self, **others: str) -> ClientSettings:
        return tuple({**self.client, **{name.replace("_", "."): value for name, value in others.items()}}.items())


@pytest.fixture(scope="module")
def secured(world: World) -> Iterator[Secured]:
    store, trust = world.folder / "spark-server.pem", world.folder / "spark-trust.pem"
    store.write_bytes(world.server.key_pem() + world.server.certificate_pem())
    trust.write_bytes(world.authority.certificate_pem())
    keys = world.folder / "spark-jwks.json"
    keys.write_bytes(jwks(jwk(kid="one")))
    overrides = {
        "listeners": "PLAIN://127.0.0.1:0,SECURED://127.0.0.1:0",
        "listener.security.protocol.map": "PLAIN:PLAINTEXT,SECURED:SASL_SSL",
        "inter.broker.listener.name": "PLAIN",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(store),
        "sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "listener.name.secured.plain.sasl.jaas.config": f'{MODULE} required user_alice="alice-secret";',
        "connections.max.reauth.ms": SESSION_MS,
    }
    with moldau.run(overrides=overrides) as broker:
        yield Secured(
            broker,
            {
                "bootstrap.servers": str(broker.addresses["SECURED"]),
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "alice",
                "sasl.password": "alice-secret",
                "ssl.ca.location": str(trust),
            },
        )


def written(secured: Secured, topic: str) -> None:
    secured.broker.create_topic(topic, partitions=1)
    options = sink_options(
        {"topic": topic, **{f"kafka.{name}": value for name, value in secured.client.items()}}, streaming=True
    )
    assert can_send(options.client)
    values = [b"%d" % number for number in range(ROWS)]
    rows = pa.RecordBatch.from_pydict({"value": pa.array(values)})
    write_plainly([rows], options.client, to_records(options))


def test_rows_go_and_come_by_our_own_requests(secured: Secured) -> None:
    written(secured, "rows")
    assert can_fetch(secured.settings())
    wanted = OffsetRange(TopicPartition("rows", 0), 0, ROWS)
    found = [value for batch in fetch_range(wanted, secured.settings(), ("value",)) for value in batch["value"]]
    assert [int(value.as_py()) for value in found] == list(range(ROWS))


def test_rows_go_and_come_with_tokens_of_an_issuer(secured: Secured, world: World) -> None:
    store = world.folder / "spark-server.pem"
    with running_issuer(store, lambda: bearer("alice")[0]) as issuer:
        by_token = {
            **{name: value for name, value in secured.client.items() if name not in ("sasl.username", "sasl.password")},
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.token.endpoint.url": issuer.url,
            "sasl.oauthbearer.client.id": CLIENT,
            "sasl.oauthbearer.client.secret": SECRET,
            "https.ca.location": secured.client["ssl.ca.location"],
        }
        other = Secured(secured.broker, by_token)
        written(other, "by-token")
        assert can_fetch(other.settings())
        wanted = OffsetRange(TopicPartition("by-token", 0), 0, ROWS)
        found = [value for batch in fetch_range(wanted, other.settings(), ("value",)) for value in batch["value"]]
        assert len(found) == ROWS
        assert len(issuer.asked) == 1, "all connections of a process share its token"


def test_a_session_is_renewed_while_answers_are_on_their_way(secured: Secured) -> None:
    """A broker ends a connection whose session is over."""
    host, port = addresses_of(secured.client["bootstrap.servers"])[0]
    connection = BrokerConnection(
        host, port, client_id="c", timeout_s=ANSWER_S_MAX, security=security_of(secured.settings())
    )
    request, end_s = MetadataRequest(topics=[]), time.monotonic() + 3 * SESSION_MS / 1_000
    asked = answered = 0
    while time.monotonic() < end_s:
        for _ in range(3):
            connection.ask(request, 4)
            asked += 1
            time.sleep(0.02)
        for _ in range(3):
            assert len(connection.answer(MetadataResponse).brokers) == 1
            answered += 1
    connection.close()
    assert asked == answered > 0


@pytest.mark.parametrize(
    ("others", "why"),
    [
        ({"sasl_password": "wrong"}, "SASL PLAIN: Authentication failed: Invalid username or password"),
        ({"ssl_ca_pem": "-----BEGIN NONSENSE-----"}, "ssl.truststore.certificates"),
    ],
)
def test_what_fails_is_left_to_librdkafka_with_a_reason(secured: Secured, others: dict[str, str], why: str) -> None:
    host, port = addresses_of(secured.client["bootstrap.servers"])[0]
    with pytest.raises(OSError, match=why) as failed:
        BrokerConnection(
            host, port, client_id="c", timeout_s=ANSWER_S_MAX, security=security_of(secured.settings(**others))
        )
    assert "wrong" not in str(failed.value)


def test_a_server_of_another_name_or_authority_is_not_spoken_to(secured: Secured, world: World) -> None:
    host, port = addresses_of(secured.client["bootstrap.servers"])[0]
    without_authority = tuple(pair for pair in secured.settings() if pair[0] != "ssl.ca.location")
    with pytest.raises(OSError, match=f"TLS: the certificate of {host} is not accepted"):
        BrokerConnection(host, port, client_id="c", timeout_s=ANSWER_S_MAX, security=security_of(without_authority))


def test_an_authority_that_took_the_place_of_another_counts_for_the_next_connection(
    secured: Secured, tmp_path: Path
) -> None:
    """A worker lives longer than certificates do."""
    host, port = addresses_of(secured.client["bootstrap.servers"])[0]
    trust = tmp_path / "trust.pem"
    trust.write_bytes(make_world(tmp_path).authority.certificate_pem())
    security = security_of(secured.settings(ssl_ca_location=str(trust)))
    with pytest.raises(OSError, match="is not accepted"):
        BrokerConnection(host, port, client_id="c", timeout_s=ANSWER_S_MAX, security=security)
    trust.write_bytes(Path(secured.client["ssl.ca.location"]).read_bytes())
    made = BrokerConnection(host, port, client_id="c", timeout_s=ANSWER_S_MAX, security=security)
    assert len(made.call(MetadataRequest(topics=[]), 4, MetadataResponse).brokers) == 1


@pytest.mark.parametrize("wrong", [{"kafka.sasl.password": "other"}, {"kafka.ssl.ca.location": OTHER}])
def test_a_write_that_is_not_accepted_is_not_tried_over_and_over(
    secured: Secured, tmp_path: Path, wrong: dict[str, str]
) -> None:
    """Whoever counts failed logins would shut the user out."""
    if OTHER in wrong.values():
        (tmp_path / OTHER).write_bytes(make_world(tmp_path).authority.certificate_pem())
        wrong = {"kafka.ssl.ca.location": str(tmp_path / OTHER)}
    options = sink_options(
        {"topic": "none", **{f"kafka.{name}": value for name, value in secured.client.items()}, **wrong}, streaming=True
    )
    began_s = time.monotonic()
    with pytest.raises(
        NoAnswer, match=r"^127\.0\.0\.1:\d+: (SASL PLAIN: Authentication failed|TLS: the certificate of)"
    ):
        write_plainly([pa.RecordBatch.from_pydict({"value": [b"1"]})], options.client, to_records(options))
    assert time.monotonic() - began_s < ANSWER_S_MAX / 2


def test_a_read_that_can_not_log_in_is_left_to_librdkafka(secured: Secured) -> None:
    wanted = OffsetRange(TopicPartition("none", 0), 0, 1)
    with pytest.raises(LeftToLibrary, match="SASL PLAIN: Authentication failed"):
        next(fetch_range(wanted, secured.settings(sasl_password="other"), ("value",)))


OAUTH = {"security.protocol": "sasl_ssl", "sasl.mechanism": "OAUTHBEARER"}
ISSUER = {
    "sasl.oauthbearer.token.endpoint.url": "https://issuer.example.org/token",
    "sasl.oauthbearer.client.id": "app",
    "sasl.oauthbearer.client.secret": "secret",
}


@pytest.mark.parametrize(
    ("settings", "is_followed"),
    [
        ({}, True),
        ({"security.protocol": "ssl"}, True),
        ({"security.protocol": "sasl_plaintext", "sasl.mechanism": "SCRAM-SHA-512"}, False),
        (
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanisms": "SCRAM-SHA-512",
                "sasl.username": "u",
                "sasl.password": "p",
            },
            True,
        ),
        ({"security.protocol": "ssl", "enable.ssl.certificate.verification": "false"}, False),
        ({"security.protocol": "ssl", "ssl.crl.location": "/crl"}, False),
        ({"security.protocol": "ssl", "ssl.ca.location": "/etc"}, False),
        ({**OAUTH}, False),
        ({**OAUTH, "sasl.oauthbearer.config": "principal=alice"}, False),
        ({**OAUTH, **ISSUER}, False),
        ({**OAUTH, **ISSUER, "sasl.oauthbearer.method": "oidc"}, True),
        ({**OAUTH, **ISSUER, "sasl.oauthbearer.method": "oidc", "sasl.oauthbearer.extensions": "a=b"}, False),
        ({**OAUTH, **ISSUER, "sasl.oauthbearer.method": "oidc", "https.ca.location": "/nowhere"}, False),
    ],
)
def test_what_is_followed(settings: dict[str, str], is_followed: bool) -> None:
    assert can_secure(settings) is is_followed


def test_a_store_that_only_librdkafka_can_read_is_left_to_it(world: World, tmp_path: Path) -> None:
    """It takes a certificate without its key."""
    certificate = tmp_path / "certificate.pem"
    certificate.write_bytes(world.client.certificate_pem())
    settings = {"security.protocol": "ssl", "ssl.certificate.location": str(certificate)}
    Consumer({**settings, "group.id": "g"}).close()
    assert not can_secure(settings)


def test_a_worker_of_a_plain_cluster_loads_nothing_of_it() -> None:
    code = "import moldau.spark.reading.fetching, sys; print([each for each in sys.modules if '.security.' in each])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
