"""A cluster of three goes from PLAINTEXT to SASL_SSL by rolling restarts, and no request of a client at work fails."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka import KafkaError
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from moldau.embedded.broker import start_command
from moldau.embedded.members import Member, members
from moldau.embedded.process import BrokerProcess
from moldau.security.tls.issuing import new_authority, new_server
from tests.apache_kafka import free_ports
from tests.cluster.asking import until
from tests.cluster.load import WAIT_S_MAX, Load

pytestmark = pytest.mark.long

START_S_MAX = 60.0
OPEN, SECURED = "PLAINTEXT", "SASL_SSL"
PASSWORDS = {"broker": "broker-secret", "alice": "alice-secret"}
MECHANISM = "SCRAM-SHA-512"
LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule"
# A broker that is restarted closes its connections; what was asked of it is asked again, of it or of another.
RESTARTS = (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE)


class Cluster:
    """Its brokers are started anew with other keys, each when it is its turn."""

    def __init__(self, folder: Path) -> None:
        ports = free_ports(6)
        self.ports = {OPEN: ports[:3], SECURED: ports[3:]}
        self.trusted = folder / "ca.pem"
        self._folder, self._output = folder, ""
        self._members: list[Member] = members([folder / "data"], range(3), has_service=False)
        self._processes: dict[int, BrokerProcess] = {}

    def start(self, broker_id: int, keys: Mapping[str, str], listeners: tuple[str, ...]) -> None:
        self.stop(broker_id)
        bound = ",".join(f"{name}://127.0.0.1:{self.ports[name][broker_id]}" for name in listeners)
        command = [*start_command(None), *self._members[broker_id].arguments]
        for key, value in {"offsets.topic.num.partitions": "3", **keys, "listeners": bound}.items():
            command += ["--override", f"{key}={value}"]
        scratch = self._folder / f"process-{broker_id}"
        scratch.mkdir(exist_ok=True)
        self._processes[broker_id] = BrokerProcess(command, scratch=scratch)
        self._processes[broker_id].start(timeout_s=START_S_MAX)

    def stop(self, broker_id: int) -> None:
        if broker_id in self._processes:
            self._processes[broker_id].end(signal.SIGTERM)

    def output(self) -> str:
        return "\n".join(process.output() for process in self._processes.values())

    def client(self, protocol: str) -> dict[str, str]:
        servers = {"bootstrap.servers": ",".join(f"127.0.0.1:{port}" for port in self.ports[protocol])}
        if protocol == OPEN:
            return servers
        login = {"sasl.mechanism": MECHANISM, "sasl.username": "alice", "sasl.password": PASSWORDS["alice"]}
        return {**servers, "security.protocol": SECURED, "ssl.ca.location": str(self.trusted), **login}

    def roll(self, keys: Mapping[str, str], listeners: tuple[str, ...], admin: AdminClient) -> None:
        for broker_id in range(3):
            self.start(broker_id, keys, listeners)
            until(lambda: is_whole(admin), "the restarted broker does not catch up", timeout_s=START_S_MAX)


@contextmanager
def opened(folder: Path) -> Iterator[Cluster]:
    cluster = Cluster(folder)
    try:
        for broker_id in range(3):
            cluster.start(broker_id, {}, (OPEN,))
        yield cluster
    finally:
        for broker_id in range(3):
            cluster.stop(broker_id)


def is_whole(admin: AdminClient) -> bool:
    found = admin.list_topics(timeout=WAIT_S_MAX)
    parts = [each for topic in found.topics.values() for each in topic.partitions.values()]
    return len(found.brokers) == 3 and all(len(each.isrs) == 3 for each in parts)


def tls_keys(folder: Path, trusted: Path) -> dict[str, str]:
    now = datetime.now(UTC)
    authority = new_authority(name="Test CA", now=now)
    server = new_server(authority, hosts=["127.0.0.1"], now=now)
    shown = folder / "server.pem"
    shown.write_bytes(server.key_pem() + server.certificate_pem())
    trusted.write_bytes(authority.certificate_pem())
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(shown),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(trusted),
        "sasl.enabled.mechanisms": MECHANISM,
    }


def brokers_keys() -> dict[str, str]:
    login = f'{LOGIN} required username="broker" password="{PASSWORDS["broker"]}";'
    return {
        "security.inter.broker.protocol": SECURED,
        "sasl.mechanism.inter.broker.protocol": MECHANISM,
        f"listener.name.sasl_ssl.{MECHANISM.lower()}.sasl.jaas.config": login,
    }


def prepare(admin: AdminClient, topics: list[str]) -> None:
    config = {"min.insync.replicas": "2"}
    for made in admin.create_topics([NewTopic(each, 3, 3, config=config) for each in topics]).values():
        made.result(WAIT_S_MAX)
    for user, password in PASSWORDS.items():
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        wanted = UserScramCredentialUpsertion(user, info, password.encode())
        admin.alter_user_scram_credentials([wanted])[user].result(WAIT_S_MAX)


def load_of(cluster: Cluster, protocol: str, topic: str) -> Load:
    return Load(cluster.client(protocol), topic, f"of-{topic}", is_harmless=lambda error: error.code() in RESTARTS)


def judge(load: Load) -> None:
    assert load.wrong == []
    assert sorted(load.read) == sorted(load.acknowledged)
    assert len(load.read) == load.sent


def test_no_request_fails_on_the_way_from_open_to_secured(tmp_path: Path) -> None:
    with opened(tmp_path) as cluster:
        admin = AdminClient({**cluster.client(OPEN), "log_level": 0})
        prepare(admin, ["early", "late"])
        tls = tls_keys(tmp_path, cluster.trusted)
        both = (OPEN, SECURED)
        early, late = load_of(cluster, OPEN, "early"), load_of(cluster, SECURED, "late")
        with early.running():
            until(lambda: len(early.read) > 100, f"nothing is read: {early.wrong}")
            cluster.roll(tls, both, admin)  # the listener is there, and nobody needs it
            with late.running():
                until(lambda: len(late.read) > 100, f"nothing is read: {late.wrong}")
                cluster.roll({**tls, **brokers_keys()}, both, admin)  # brokers go over, one after the other
                early.end()
                secured = AdminClient({**cluster.client(SECURED), "log_level": 0})
                cluster.roll({**tls, **brokers_keys()}, (SECURED,), secured)  # the open listener goes
                before = len(late.read)
                until(lambda: len(late.read) > before + 100, f"it stands still: {late.wrong}")
        judge(early)
        judge(late)
        output = cluster.output()
    assert not [each for each in PASSWORDS.values() if each in output]
