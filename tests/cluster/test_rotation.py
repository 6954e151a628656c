"""Certificates, passwords and ACLs that change under load: no request of a client that is at work fails."""

from __future__ import annotations

import socket
import ssl
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography import x509

import moldau
from moldau.embedded.cluster import EmbeddedCluster
from moldau.embedded.security import ClientSettings
from moldau.security.tls.issuing import load_identity, new_server
from tests.cluster.asking import until
from tests.cluster.load import WAIT_S_MAX, Load

pytestmark = pytest.mark.long

ROUNDS = 4
TOPIC, GROUP = "orders", "billing"


def rights(pattern: ResourcePatternType, name: str) -> list[AclBinding]:
    return [
        AclBinding(kind, named, how, "User:alice", "*", operation, AclPermissionType.ALLOW)
        for kind, named, how, operation in (
            (ResourceType.TOPIC, name, pattern, AclOperation.WRITE),
            (ResourceType.TOPIC, name, pattern, AclOperation.READ),
            (ResourceType.GROUP, GROUP, ResourcePatternType.LITERAL, AclOperation.READ),
        )
    ]


def allow(admin: AdminClient, bindings: list[AclBinding]) -> None:
    for made in admin.create_acls(bindings).values():
        made.result(WAIT_S_MAX)


def take_back(admin: AdminClient, pattern: ResourcePatternType, name: str) -> None:
    rule = AclBindingFilter(
        ResourceType.TOPIC, name, pattern, "User:alice", None, AclOperation.ANY, AclPermissionType.ANY
    )
    for gone in admin.delete_acls([rule]).values():
        assert len(gone.result(WAIT_S_MAX)) == 2


def set_password(admin: AdminClient, password: str) -> None:
    wanted = [
        UserScramCredentialUpsertion("alice", ScramCredentialInfo(mechanism, 4096), password.encode())
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)
    ]
    for each in wanted:
        admin.alter_user_scram_credentials([each])["alice"].result(WAIT_S_MAX)


def renew_certificate(folder: Path) -> int:
    """A new key and certificate of the same authority in one rename; returns its serial number."""
    authority = load_identity((folder / "ca.key").read_bytes(), (folder / "ca.pem").read_bytes())
    old = x509.load_pem_x509_certificate((folder / "server.pem").read_bytes())
    names = old.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    hosts = [str(name.value) for name in names]
    made = new_server(authority, hosts=hosts, now=datetime.now(UTC))
    written = folder / "server.new"
    written.write_bytes(made.key_pem() + made.certificate_pem())
    written.replace(folder / "server.pem")
    return made.certificate.serial_number


def shown_serial(address: str) -> int:
    host, _, port = address.rpartition(":")
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection((host, int(port)), 10) as plain, context.wrap_socket(plain) as secured:
        shown = secured.getpeercert(binary_form=True)
    assert shown is not None
    return x509.load_der_x509_certificate(shown).serial_number


def gets_in(clients: ClientSettings) -> bool:
    """And sees the topic, for which a right is needed."""
    admin = AdminClient({**clients.confluent, "log_level": 0})
    try:
        return TOPIC in admin.list_topics(timeout=5).topics
    except KafkaException:  # librdkafka tries again until the time is up
        return False


def rotate(cluster: EmbeddedCluster, admin: AdminClient, number: int) -> None:
    serial = renew_certificate(cluster.data_dir / "security")
    addresses = [broker.bootstrap_servers for broker in cluster.brokers.values()]
    until(lambda: [shown_serial(address) for address in addresses] == [serial] * 3, "the new certificate is not shown")
    set_password(admin, f"secret {number}")
    until(lambda: gets_in(cluster.clients.of_user("alice", f"secret {number}")), "the new password is not taken")
    until(lambda: not gets_in(cluster.clients.of_user("alice", f"secret {number - 1}")), "the old password is taken")
    # New rules come before the old ones go, one way and the other.
    patterns = (ResourcePatternType.LITERAL, TOPIC), (ResourcePatternType.PREFIXED, TOPIC[:3])
    old, new = patterns if number % 2 else patterns[::-1]
    allow(admin, rights(*new))
    until(lambda: gets_in(cluster.clients.of_user("alice", f"secret {number}")), "the new rules are not followed")
    take_back(admin, *old)


def test_nothing_fails_while_everything_is_rotated(tmp_path: Path) -> None:
    with moldau.run(brokers=3, secure=True, data_dir=tmp_path / "data") as cluster:
        cluster.create_topic(TOPIC, partitions=3, replication_factor=3, config={"min.insync.replicas": 2})
        admin = AdminClient(cluster.clients.confluent)
        set_password(admin, "secret 0")
        allow(admin, rights(ResourcePatternType.LITERAL, TOPIC))
        alice = cluster.clients.of_user("alice", "secret 0")
        until(lambda: gets_in(alice), "alice does not get in")
        load = Load(alice.confluent, TOPIC, GROUP)
        with load.running():
            until(lambda: len(load.read) > 100, f"nothing is read: {load.wrong}")
            for number in range(1, ROUNDS + 1):
                before = len(load.acknowledged)
                rotate(cluster, admin, number)
                until(lambda before=before: len(load.acknowledged) > before + 100, f"it stands still: {load.wrong}")  # type: ignore[misc]
        assert load.wrong == []
        assert sorted(load.read) == sorted(load.acknowledged)
        assert len(load.read) == load.sent
        assert "secret" not in cluster.output()
