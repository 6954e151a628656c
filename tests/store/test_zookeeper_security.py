"""A ZooKeeper that wants TLS and a login: who is let in, and what others may read and write."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError

from moldau.core.clock import SystemClock
from moldau.security.tls.contexts import client_tls
from moldau.security.tls.issuing import new_authority
from moldau.security.tls.settings import TlsSettings
from moldau.store.store import START, Registration, StoreError
from moldau.store.tree.store import TreeStore
from moldau.store.zookeeper import open_zookeeper
from moldau.store.zookeeper.security import User, ZookeeperSecurity
from tests.apache_kafka import free_ports
from tests.security.tls.conftest import world
from tests.security.tls.world import World
from tests.store import ensemble as zookeeper
from tests.store.ensemble import Ensemble, running_ensemble
from tests.store.kinds import lead, run

__all__ = ["world"]

pytestmark = [
    pytest.mark.xdist_group("store"),
    pytest.mark.skipif(not zookeeper.is_available(), reason="needs Java, and Maven the first time"),
]

MOLDAU = User("moldau", "zk-secret")
JAAS = """\
Server {
  org.apache.zookeeper.server.auth.DigestLoginModule required user_moldau="zk-secret" user_other="other-secret";
};
"""


@dataclass(frozen=True)
class Secured:
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


@pytest.fixture(scope="module")
def secured(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("zookeeper")
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
        yield Secured(running, port, world)


async def opened(connect: str, security: ZookeeperSecurity | None, timeout_ms: int = 30_000) -> TreeStore:
    return await open_zookeeper(
        connect, SystemClock(), session_timeout_ms=10_000, connection_timeout_ms=timeout_ms, security=security
    )


async def use(store: TreeStore) -> None:
    """All that a broker does with it."""
    epoch = await lead(store, 1)
    await store.append(b"an entry", controller_epoch=epoch)
    await store.register(Registration(2, b"another"))
    assert [each.broker_id for each in await store.registrations()] == [1, 2]


@pytest.mark.parametrize("user", [MOLDAU, None], ids=["by password", "by certificate"])
def test_brokers_over_tls_share_what_nobody_else_may_change(secured: Secured, user: User | None) -> None:
    connect = secured.by_tls(f"/brokers-{'user' if user else 'certificate'}")

    async def test() -> None:
        store = await opened(connect, secured.trusting(user))
        await use(store)
        other = await opened(connect, secured.trusting(user))
        assert [each.payload for each in (await other.read(START)).entries] == [b"an entry"]
        await other.close()
        check_others(secured, connect.partition("/")[2])
        await store.close()

    run(test)


def check_others(secured: Secured, chroot: str) -> None:
    """What somebody can do who has neither the password nor the certificate."""
    client = KazooClient(secured.plainly(f"/{chroot}"))
    client.start(30)
    try:
        assert b'"brokerid":1' in client.get("/controller")[0]
        assert client.get_children("/brokers/ids") == ["1", "2"]
        for path in ("/moldau/log", "/moldau/log/entries/0000000000000000001"):
            with pytest.raises(NoAuthError):
                client.get(path)
        for path in ("/controller_epoch", "/moldau/log"):
            with pytest.raises(NoAuthError):
                client.set(path, b"mine")
        with pytest.raises(NoAuthError):
            client.delete("/controller")
        with pytest.raises(NoAuthError):
            client.create("/brokers/ids/3", b"")
    finally:
        client.stop()
        client.close()


def test_a_login_works_without_tls(secured: Secured) -> None:
    async def test() -> None:
        store = await opened(secured.plainly("/plain"), ZookeeperSecurity(user=MOLDAU, sets_acl=True))
        await use(store)
        await store.close()

    run(test)


def test_another_user_may_not_write_what_brokers_made(secured: Secured) -> None:
    async def test() -> None:
        store = await opened(secured.plainly("/owned"), ZookeeperSecurity(user=MOLDAU, sets_acl=True))
        await use(store)
        with pytest.raises(StoreError, match="NoAuthError"):
            await opened(secured.plainly("/owned"), ZookeeperSecurity(user=User("other", "other-secret")))
        await store.close()

    run(test)


def test_a_wrong_password_is_told_and_is_in_no_line(secured: Secured, caplog: pytest.LogCaptureFixture) -> None:
    wrong = ZookeeperSecurity(user=User("moldau", "not-the-one"))

    async def test() -> None:
        with pytest.raises(StoreError, match="SASL DIGEST-MD5: the login was refused") as failed:
            await opened(secured.plainly("/"), wrong, 3_000)
        assert "not-the-one" not in str(failed.value) + caplog.text

    with caplog.at_level(logging.DEBUG):
        run(test)


def test_a_server_of_another_authority_is_not_trusted(secured: Secured) -> None:
    stranger = new_authority(name="Stranger", now=datetime.now(UTC)).certificate_pem().decode()
    strangers = TlsSettings(truststore_type="PEM", truststore_certificates=stranger)

    async def test() -> None:
        with pytest.raises(StoreError, match="TLS: the server's certificate is not accepted"):
            await opened(secured.by_tls("/"), secured.trusting(None, strangers), 2_000)

    run(test)


def test_a_lost_connection_is_made_and_logged_in_again(secured: Secured) -> None:
    async def test() -> None:
        store = await opened(secured.by_tls("/again"), secured.trusting())
        await use(store)
        store._client.drop_connection()
        await store.register(Registration(3, b"after it"))
        await store.close()

    run(test)
