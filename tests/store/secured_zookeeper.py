"""A real ZooKeeper with a port of TLS beside the plain one, where users log in by DIGEST-MD5."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from moldau.security.tls.contexts import client_tls
from moldau.security.tls.settings import TlsSettings
from moldau.store.zookeeper.security import User, ZookeeperSecurity
from tests.apache_kafka import free_ports
from tests.security.tls.world import World
from tests.store.ensemble import Ensemble, running_ensemble

MOLDAU = User("moldau", "zk-secret")
JAAS = """\
Server {
  org.apache.zookeeper.server.auth.DigestLoginModule required user_moldau="zk-secret" user_other="other-secret";
};
"""


@dataclass(frozen=True)
class SecuredZookeeper:
    ensemble: Ensemble
    tls_port: int
    world: World

    def plainly(self, path: str) -> str:
        return f"{self.ensemble.connect}{path}"

    def by_tls(self, path: str) -> str:
        return f"127.0.0.1:{self.tls_port}{path}"

    def trusting(self, user: User | None = MOLDAU, settings: TlsSettings | None = None) -> ZookeeperSecurity:
        tls = client_tls(settings or self.world.settings(self.world.client), now_s=self.world.now_s)
        return ZookeeperSecurity(tls=lambda: tls, user=user, sets_acl=True)


@contextmanager
def running_secured(world: World, folder: Path) -> Iterator[SecuredZookeeper]:
    store, trust, jaas = folder / "server.pem", folder / "authority.pem", folder / "jaas.conf"
    store.write_bytes(world.server.key_pem() + world.server.certificate_pem())
    trust.write_bytes(world.authority.certificate_pem())
    jaas.write_text(JAAS)
    port = free_ports(1)[0]
    settings = {
        "secureClientPort": port,
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "ssl.keyStore.location": store,
        "ssl.trustStore.location": trust,
        "ssl.clientAuth": "want",
        "authProvider.sasl": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
    }
    options = [f"-Djava.security.auth.login.config={jaas}"]
    with running_ensemble(folder, count=1, settings=settings, java_options=options) as running:
        yield SecuredZookeeper(running, port, world)
