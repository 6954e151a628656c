"""Delegation tokens on running brokers: by which connections, on which brokers, and until when."""

from __future__ import annotations

import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import moldau
from moldau.security.sasl.client_login import LoginFailed
from tests.differential.peer import CLOSED, Peer
from tests.node.securing.secured import PASSWORDS, Secured, running_secured
from tests.security.token_brokers import SECRET, hmac_of, log_in, password_of

CREATE, DESCRIBE, EXPIRE = "CreateDelegationToken", "DescribeDelegationToken", "ExpireDelegationToken"
OK, NOT_ALLOWED = 0, 64
SHORT_MS = 1_500
WAIT_S_MAX = 30.0


class TlsPeer(Peer):
    def __init__(self, address: tuple[str, int], context: ssl.SSLContext) -> None:
        self.context = context
        super().__init__(address)

    def connected(self) -> Any:
        return self.context.wrap_socket(super().connected(), server_hostname="127.0.0.1")


def address_of(bootstrap: str) -> tuple[str, int]:
    host, _, port = bootstrap.rpartition(":")
    return host, int(port)


def created(peer: Peer, **fields: Any) -> Any:
    return peer.ask(CREATE, 3, **{"renewers": [], "max_lifetime_ms": -1, **fields})


def new_token(peer: Peer, **fields: Any) -> str:
    answer = created(peer, **fields)
    assert answer["error_code"] == OK, answer
    assert answer["hmac"] == hmac_of(answer["token_id"])
    return str(answer["token_id"])


def until(condition: Callable[[], bool], what: str) -> None:
    deadline_s = time.monotonic() + WAIT_S_MAX
    while not condition():
        assert time.monotonic() < deadline_s, f"waited for {what}"
        time.sleep(0.05)


def logs_in(peer: Peer, token_id: str, mechanism: str = "SCRAM-SHA-512") -> bool:
    with closing(peer):
        try:
            log_in(peer, mechanism, token_id, password_of(token_id), is_by_token=True)
        except LoginFailed:
            return False
        answer = peer.ask(DESCRIBE, 3, owners=None)
        assert isinstance(answer, dict)
        assert answer["error_code"] == NOT_ALLOWED  # it is known as a token's connection
        return True


@pytest.fixture(scope="module")
def issuing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    swept = {"delegation_token_expiry_check_interval_ms": "200"}
    with running_secured(tmp_path_factory.mktemp("keys"), delegation_token_secret_key=SECRET, **swept) as running:
        yield running


def connected(secured: Secured, protocol: str, *, with_certificate: bool = False) -> Peer:
    address = address_of(secured.address(protocol))
    if "SSL" not in protocol:
        return Peer(address)
    context = ssl.create_default_context(cafile=str(secured.keys.trusted))
    if with_certificate:
        context.load_cert_chain(secured.keys.client)
    return TlsPeer(address, context)


def test_a_token_is_for_whoever_proved_who_it_is(issuing: Secured) -> None:
    for protocol in ("PLAINTEXT", "SSL"):
        with closing(connected(issuing, protocol)) as peer:
            assert created(peer)["error_code"] == NOT_ALLOWED
    with closing(connected(issuing, "SSL", with_certificate=True)) as peer:
        answer = created(peer)
        assert (answer["error_code"], answer["principal_name"]) == (OK, "carol")
    for protocol in ("SASL_PLAINTEXT", "SASL_SSL"):
        for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
            with closing(connected(issuing, protocol)) as peer:
                log_in(peer, mechanism, "alice", PASSWORDS["alice"])
                token_id = new_token(peer)
                for scram in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
                    assert logs_in(connected(issuing, protocol), token_id, scram)


def test_our_tools_log_in_with_a_token_and_those_of_librdkafka_say_that_they_cannot(
    issuing: Secured, tmp_path: Path
) -> None:
    with closing(connected(issuing, "SASL_SSL")) as peer:
        log_in(peer, "SCRAM-SHA-512", "alice", PASSWORDS["alice"])
        token_id = new_token(peer)
    scram = "org.apache.kafka.common.security.scram.ScramLoginModule"
    login = f'{scram} required username="{token_id}" password="{password_of(token_id)}"'
    settings = f"security.protocol=SASL_SSL\nssl.truststore.type=PEM\nssl.truststore.location={issuing.keys.trusted}\n"
    settings += f"sasl.mechanism=SCRAM-SHA-512\nsasl.jaas.config={login}"
    by_token, as_user = tmp_path / "token.properties", tmp_path / "user.properties"
    by_token.write_text(f'{settings} tokenauth="true";\n')
    as_user.write_text(f"{settings};\n")

    def run(*words: str, file: Path) -> subprocess.CompletedProcess[str]:
        servers = ["-b", issuing.address("SASL_SSL"), "--command-config", str(file)]
        command = [sys.executable, "-m", "moldau", *words, *servers]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    listed = run("topics", "list", "-o", "json", file=by_token)
    assert (listed.returncode, listed.stderr) == (0, "")
    refused = run("topics", "list", file=as_user)
    assert refused.returncode == 1
    assert "invalid credentials" in refused.stderr
    assert run("topics", "create", "letters", file=by_token).returncode == 0
    refused = run("produce", "letters", file=by_token)
    assert (refused.returncode, refused.stderr) == (
        2,
        'moldau produce: client configuration: librdkafka, which this tool runs on, knows no tokenauth="true"\n',
    )


def test_a_session_ends_with_its_token_and_the_token_is_forgotten(issuing: Secured) -> None:
    with closing(connected(issuing, "SASL_SSL")) as alice, closing(connected(issuing, "SASL_SSL")) as by_token:
        log_in(alice, "SCRAM-SHA-256", "alice", PASSWORDS["alice"])
        token_id = new_token(alice, max_lifetime_ms=SHORT_MS)
        session = log_in(by_token, "SCRAM-SHA-256", token_id, password_of(token_id), is_by_token=True)
        assert session.session_lifetime_ms is not None
        assert 0 < session.session_lifetime_ms <= SHORT_MS

        def served() -> bool:
            return by_token.ask("Metadata", 12, topics=[]) != CLOSED

        assert served()
        until(lambda: not served(), "the end of the session")

        def described() -> list[str]:
            answer = alice.ask(DESCRIBE, 3, owners=None)
            assert isinstance(answer, dict)
            return [each["token_id"] for each in answer["tokens"]]

        until(lambda: token_id not in described(), "the token to be removed")
        assert not logs_in(connected(issuing, "SASL_SSL"), token_id)
        assert f"delegation token {token_id} of 'User:alice' has expired" in issuing.broker.output()


def test_a_session_is_not_renewed_when_its_token_was_expired(issuing: Secured) -> None:
    with closing(connected(issuing, "SASL_SSL")) as alice, closing(connected(issuing, "SASL_SSL")) as by_token:
        log_in(alice, "SCRAM-SHA-256", "alice", PASSWORDS["alice"])
        token_id = new_token(alice)
        log_in(by_token, "SCRAM-SHA-256", token_id, password_of(token_id), is_by_token=True)
        answer = alice.ask(EXPIRE, 2, hmac=hmac_of(token_id), expiry_time_period_ms=-1)
        assert isinstance(answer, dict)
        assert answer["error_code"] == OK
        assert by_token.ask("Metadata", 12, topics=[]) != CLOSED  # as in Kafka, until the session's end
        with pytest.raises(LoginFailed, match="invalid credentials"):
            log_in(by_token, "SCRAM-SHA-256", token_id, password_of(token_id), is_by_token=True)


# Neither librdkafka nor the clients of Python know tokens; kafka-python can be taught the extension.
KAFKA_PYTHON = """
import sys
from kafka import KafkaConsumer, KafkaProducer
from kafka.net.sasl import register_sasl_mechanism
from kafka.net.sasl.scram import SaslMechanismScram, ScramClient

class TokenClient(ScramClient):
    def first_message(self):
        bare = b'n=' + self.user + b',r=' + self.nonce + b',tokenauth=true'
        self.auth_message += bare
        return b'n,,' + bare

class TokenMechanism(SaslMechanismScram):
    def __init__(self, **config):
        super().__init__(**config)
        self._scram_client = TokenClient(
            config['sasl_plain_username'], config['sasl_plain_password'], config['sasl_mechanism'])

address, trusted, token_id, password = sys.argv[1:]
register_sasl_mechanism('SCRAM-SHA-512', TokenMechanism, overwrite=True)
settings = dict(bootstrap_servers=address.split(','), security_protocol='SASL_SSL', ssl_cafile=trusted,
                sasl_mechanism='SCRAM-SHA-512', sasl_plain_username=token_id, sasl_plain_password=password)
producer = KafkaProducer(**settings)
for number in range(60):
    producer.send('by-token', str(number).encode(), partition=number % 3).get(30)
producer.close()
consumer = KafkaConsumer('by-token', auto_offset_reset='earliest', consumer_timeout_ms=30_000, **settings)
found = sorted(int(next(consumer).value) for _ in range(60))
consumer.close()
print(found == list(range(60)))
"""


def kafka_python(bootstrap: str, trusted: Path, token_id: str) -> str:
    """In a process of its own: it is imported with warnings, which are errors here."""
    words = [bootstrap, str(trusted), token_id, password_of(token_id)]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", KAFKA_PYTHON, *words],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.stdout.strip() or done.stderr


class Cluster:
    """Three brokers of `moldau.run(secure=True)`, and their admin."""

    def __init__(self, running: moldau.EmbeddedCluster) -> None:
        self.running = running
        settings = running.clients.confluent
        self.trusted = Path(settings["ssl.ca.location"])
        self.user, self.password = settings["sasl.username"], settings["sasl.password"]

    def connected(self, broker_id: int) -> Peer:
        context = ssl.create_default_context(cafile=str(self.trusted))
        return TlsPeer(address_of(self.running.brokers[broker_id].bootstrap_servers), context)

    def admin(self, broker_id: int) -> Peer:
        peer = self.connected(broker_id)
        log_in(peer, "SCRAM-SHA-512", self.user, self.password)
        return peer

    def described(self, broker_id: int) -> set[str]:
        with closing(self.admin(broker_id)) as peer:
            answer = peer.ask(DESCRIBE, 3, owners=None)
            assert isinstance(answer, dict)
            return {each["token_id"] for each in answer["tokens"]}

    def know(self, tokens: set[str]) -> None:
        """All brokers, soon."""
        for broker_id in self.running.brokers:
            until(lambda broker_id=broker_id: self.described(broker_id) == tokens, f"tokens on broker {broker_id}")  # type: ignore[misc]

    def log_in_everywhere(self, tokens: set[str]) -> None:
        for broker_id in self.running.brokers:
            for token_id in tokens:
                assert logs_in(self.connected(broker_id), token_id)


def test_tokens_are_the_clusters_and_survive_its_brokers(tmp_path: Path) -> None:
    keys = {"delegation.token.secret.key": SECRET, "default.replication.factor": 3, "num.partitions": 3}
    with moldau.run(brokers=3, secure=True, overrides=keys, data_dir=tmp_path / "data") as running:
        cluster = Cluster(running)
        tokens = set()
        for broker_id in running.brokers:  # two of which ask the controller
            with closing(cluster.admin(broker_id)) as peer:
                tokens.add(new_token(peer))
        cluster.know(tokens)
        cluster.log_in_everywhere(tokens)
        running.create_topic("by-token", partitions=3, replication_factor=3)
        assert kafka_python(running.bootstrap_servers, cluster.trusted, min(tokens)) == "True"
        for broker_id in running.brokers:  # whichever of them is the controller
            running.stop(broker_id)
            running.restart(broker_id)
        cluster.know(tokens)
        cluster.log_in_everywhere(tokens)
        ended = tokens.pop()
        with closing(cluster.admin(min(running.brokers))) as peer:
            answer = peer.ask(EXPIRE, 2, hmac=hmac_of(ended), expiry_time_period_ms=-1)
            assert isinstance(answer, dict)
            assert answer["error_code"] == OK
        cluster.know(tokens)
        for broker_id in running.brokers:
            assert not logs_in(cluster.connected(broker_id), ended)
            said = running.brokers[broker_id].output()
            assert not any(each in said for each in (SECRET, password_of(ended), hmac_of(ended).hex()))


def test_a_token_survives_a_restart_and_no_answer_shows_the_secret(tmp_path: Path) -> None:
    with moldau.run(secure=True, overrides={"delegation.token.secret.key": SECRET}, data_dir=tmp_path) as broker:
        settings = broker.clients.confluent
        context = ssl.create_default_context(cafile=settings["ssl.ca.location"])

        def connected() -> Peer:
            return TlsPeer(address_of(broker.bootstrap_servers), context)

        with closing(connected()) as admin:
            log_in(admin, "SCRAM-SHA-512", settings["sasl.username"], settings["sasl.password"])
            token_id = new_token(admin)
            answer = admin.ask("DescribeConfigs", 4, resources=[{"resource_type": 4, "resource_name": "0"}])
            assert isinstance(answer, dict)
            configs = {each["name"]: each for each in answer["results"][0]["configs"]}
            secret = configs["delegation.token.secret.key"]
            assert (secret["value"], secret["is_sensitive"]) == (None, True)
            assert SECRET not in repr(answer)
        broker.kill()
        broker.restart()
        assert logs_in(connected(), token_id)
        assert SECRET not in broker.output()
