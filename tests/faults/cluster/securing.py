"""A cluster that trusts nobody: TLS and SCRAM between brokers and to clients, ACLs, and a store with both.

Clients have rights of their own, and no more. The harness itself asks over a listener of its own, which is plain: it
has to know what a broker believes also where no login can be had.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from moldau.security.acls.vocabulary import AclOperation, PermissionType, ResourceType
from moldau.security.tls.issuing import Identity, new_authority, new_server
from moldau.wire import messages
from moldau.wire.messages.create_acls import AclCreation
from tests.faults.cluster.asking import Refused, ask

PROBES, PROBE_PORT = "PROBES", 9095
STORE_TLS_PORT = 2281
REAUTHENTICATION_MS = 15_000  # several times in the shortest run
MECHANISM = "SCRAM-SHA-512"
PASSWORDS = {"broker": "broker-secret", "client": "client-secret"}
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
DIGEST = "org.apache.zookeeper.server.auth.DigestLoginModule"
RIGHTS = (
    (ResourceType.TOPIC, "*", AclOperation.READ),
    (ResourceType.TOPIC, "*", AclOperation.WRITE),
    (ResourceType.GROUP, "*", AclOperation.READ),
    (ResourceType.TRANSACTIONAL_ID, "*", AclOperation.WRITE),
)


@dataclass(frozen=True)
class Security:
    """The files of one run."""

    directory: Path
    authority: Identity

    @property
    def trusted(self) -> Path:
        return self.directory / "authority.pem"

    def broker_settings(self, address: str, *, port: int) -> dict[str, str]:
        listeners = f"SASL_SSL://{address}:{port},{PROBES}://{address}:{PROBE_PORT}"
        return {
            "listeners": listeners,
            "advertised.listeners": listeners,
            "listener.security.protocol.map": f"SASL_SSL:SASL_SSL,{PROBES}:PLAINTEXT",
            "inter.broker.listener.name": "SASL_SSL",
            "sasl.enabled.mechanisms": MECHANISM,
            "sasl.mechanism.inter.broker.protocol": MECHANISM,
            f"listener.name.sasl_ssl.{MECHANISM.lower()}.sasl.jaas.config": _login(SCRAM, "broker"),
            "connections.max.reauth.ms": str(REAUTHENTICATION_MS),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._store(address)),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.trusted),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:broker;User:ANONYMOUS",
        }

    def store_client_settings(self, servers: list[str], path: str) -> dict[str, str]:
        """For brokers."""
        return {
            "zookeeper.connect": ",".join(f"{server}:{STORE_TLS_PORT}" for server in servers) + path,
            "zookeeper.ssl.client.enable": "true",
            "zookeeper.ssl.truststore.location": str(self.trusted),
            "zookeeper.sasl.jaas.config": _login(DIGEST, "broker"),
            "zookeeper.set.acl": "true",
        }

    def store_server_settings(self, address: str) -> tuple[dict[str, str], list[str]]:
        """Of a ZooKeeper server, and of its JVM."""
        users = self.directory / "zookeeper-jaas.conf"
        users.write_text(f'Server {{\n  {DIGEST} required user_broker="{PASSWORDS["broker"]}";\n}};\n')
        settings = {
            "secureClientPort": str(STORE_TLS_PORT),
            "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
            "ssl.keyStore.location": str(self._store(address)),
            "ssl.trustStore.location": str(self.trusted),
            "ssl.clientAuth": "none",
            "authProvider.sasl": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
        }
        return settings, [f"-Djava.security.auth.login.config={users}"]

    def first_users(self) -> list[str]:
        """Arguments of a broker's start."""
        users = (f"{MECHANISM}=[name={name},password={password}]" for name, password in PASSWORDS.items())
        return [word for user in users for word in ("--add-scram", user)]

    def client_settings(self) -> dict[str, str]:
        """Of librdkafka."""
        return {
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.trusted),
            "sasl.mechanism": MECHANISM,
            "sasl.username": "client",
            "sasl.password": PASSWORDS["client"],
        }

    def _store(self, address: str) -> Path:
        path = self.directory / f"{address}.pem"
        if not path.exists():
            identity = new_server(self.authority, hosts=[address], now=datetime.now(UTC))
            path.write_bytes(identity.key_pem() + identity.certificate_pem())
        return path


def secure(directory: Path) -> Security:
    directory.mkdir(parents=True)
    security = Security(directory, new_authority(name="Faults", now=datetime.now(UTC)))
    security.trusted.write_bytes(security.authority.certificate_pem())
    return security


def grant(address: str) -> None:
    """What clients need for their work. Raises OSError, and Refused."""
    creations = [
        AclCreation(
            resource_type=kind, resource_name=name, principal="User:client", host="*",
            operation=operation, permission_type=PermissionType.ALLOW,
        )
        for kind, name, operation in RIGHTS
    ]  # fmt: skip
    answer = ask(address, messages.CreateAclsRequest(creations=creations), 2, messages.CreateAclsResponse, timeout_s=20)
    for result in answer.results:
        if result.error_code:
            raise Refused(result.error_code, result.error_message)


def _login(module: str, user: str) -> str:
    return f'{module} required username="{user}" password="{PASSWORDS[user]}";'
