"""A ZooKeeper that wants TLS and a login: who is let in, and what others may read and write."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError

from moldau.cli.metadata_move.moving import described, move_all
from moldau.core.clock import SystemClock
from moldau.security.tls.issuing import new_authority
from moldau.security.tls.settings import TlsSettings
from moldau.store.sqlite import SqliteStore
from moldau.store.store import START, Registration, StoreError
from moldau.store.tree.store import TreeStore
from moldau.store.zookeeper import open_zookeeper
from moldau.store.zookeeper.security import User, ZookeeperSecurity
from tests.security.tls.conftest import world
from tests.security.tls.world import World
from tests.store import ensemble as zookeeper
from tests.store.kinds import lead, run
from tests.store.secured_zookeeper import MOLDAU, SecuredZookeeper, running_secured

__all__ = ["world"]

pytestmark = [
    pytest.mark.xdist_group("store"),
    pytest.mark.skipif(not zookeeper.is_available(), reason="needs Java, and Maven the first time"),
]


@pytest.fixture(scope="module")
def secured(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredZookeeper]:
    with running_secured(world, tmp_path_factory.mktemp("zookeeper")) as running:
        yield running


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
def test_brokers_over_tls_share_what_nobody_else_may_change(secured: SecuredZookeeper, user: User | None) -> None:
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


def check_others(secured: SecuredZookeeper, chroot: str) -> None:
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


def test_a_login_works_without_tls(secured: SecuredZookeeper) -> None:
    async def test() -> None:
        store = await opened(secured.plainly("/plain"), ZookeeperSecurity(user=MOLDAU, sets_acl=True))
        await use(store)
        await store.close()

    run(test)


def test_another_user_may_not_write_what_brokers_made(secured: SecuredZookeeper) -> None:
    async def test() -> None:
        store = await opened(secured.plainly("/owned"), ZookeeperSecurity(user=MOLDAU, sets_acl=True))
        await use(store)
        with pytest.raises(StoreError, match="NoAuthError"):
            await opened(secured.plainly("/owned"), ZookeeperSecurity(user=User("other", "other-secret")))
        await store.close()

    run(test)


def test_a_wrong_password_is_told_and_in_no_line(secured: SecuredZookeeper, caplog: pytest.LogCaptureFixture) -> None:
    wrong = ZookeeperSecurity(user=User("moldau", "not-the-one"))

    async def test() -> None:
        with pytest.raises(StoreError, match="SASL DIGEST-MD5: the login was refused") as failed:
            await opened(secured.plainly("/"), wrong, 3_000)
        assert "not-the-one" not in str(failed.value) + caplog.text

    with caplog.at_level(logging.DEBUG):
        run(test)


def test_a_server_of_another_authority_is_not_trusted(secured: SecuredZookeeper) -> None:
    stranger = new_authority(name="Stranger", now=datetime.now(UTC)).certificate_pem().decode()
    strangers = TlsSettings(truststore_type="PEM", truststore_certificates=stranger)

    async def test() -> None:
        with pytest.raises(StoreError, match="TLS: the server's certificate is not accepted"):
            await opened(secured.by_tls("/"), secured.trusting(None, strangers), 2_000)

    run(test)


def test_a_lost_connection_is_made_and_logged_in_again(secured: SecuredZookeeper) -> None:
    async def test() -> None:
        store = await opened(secured.by_tls("/again"), secured.trusting())
        await use(store)
        store._client.drop_connection()
        await store.register(Registration(3, b"after it"))
        await store.close()

    run(test)


def test_metadata_of_one_machine_is_moved_there(secured: SecuredZookeeper, tmp_path: Path) -> None:
    """By the settings of the brokers that will use it."""
    module = "org.apache.zookeeper.server.auth.DigestLoginModule"
    trust, properties = tmp_path / "trust.pem", tmp_path / "server.properties"
    trust.write_bytes(secured.world.authority.certificate_pem())
    properties.write_text(
        f"zookeeper.ssl.client.enable=true\nzookeeper.ssl.truststore.location={trust}\nzookeeper.set.acl=true\n"
        f'zookeeper.sasl.jaas.config={module} required username="moldau" password="zk-secret";\n'
    )
    connect = secured.by_tls("/moved")

    async def test() -> None:
        source = await SqliteStore.open(tmp_path / "store.db")
        await source.append(b"kept", controller_epoch=await lead(source, 1))
        await source.close()
        await move_all(tmp_path / "store.db", described("ZooKeeper", connect, str(properties)))
        target = await opened(connect, secured.trusting())
        found = await target.read(START)
        assert b"kept" in [each.payload for each in (*found.entries, *filter(None, [found.snapshot]))]
        await target.close()

    run(test)
