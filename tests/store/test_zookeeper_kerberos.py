"""A ZooKeeper in whose realm brokers have keys: they log in by GSSAPI, and own what they make."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError

from moldau.core.clock import SystemClock
from moldau.core.config.broker import BrokerConfig
from moldau.core.config.definitions import ConfigError
from moldau.store.service_security import zookeeper_security
from moldau.store.store import Registration, StoreError
from moldau.store.tree.store import TreeStore
from moldau.store.zookeeper import open_zookeeper
from moldau.store.zookeeper.security import ZookeeperSecurity
from tests.kerberos import Realm, in_realm, running_realm
from tests.store import ensemble as zookeeper
from tests.store.ensemble import Ensemble, running_ensemble
from tests.store.kinds import lead, run

pytestmark = [
    pytest.mark.long,
    pytest.mark.xdist_group("store"),
    pytest.mark.skipif(not zookeeper.is_available(), reason="needs Java, and Maven the first time"),
]

MODULE = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true"
BROKER, OTHER, SERVER = "broker", "other", "zookeeper/localhost"


@pytest.fixture(scope="module")
def realm() -> Iterator[Realm]:
    with running_realm() as realm, in_realm(realm):
        yield realm


@pytest.fixture(scope="module")
def ensemble(realm: Realm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ensemble]:
    folder = tmp_path_factory.mktemp("zookeeper")
    jaas = folder / "jaas.conf"
    jaas.write_text(f"Server {{ {login(realm, SERVER)} }};\n")
    settings = {"authProvider.sasl": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"}
    options = [f"-Djava.security.auth.login.config={jaas}", f"-Djava.security.krb5.conf={realm.config}"]
    with running_ensemble(folder, count=1, settings=settings, java_options=options) as running:
        yield running


def login(realm: Realm, principal: str) -> str:
    return f'{MODULE} keyTab="{realm.add(principal)}" principal="{principal}@{realm.name}";'


def security(realm: Realm, principal: str) -> ZookeeperSecurity:
    keys = {"zookeeper.sasl.jaas.config": login(realm, principal), "zookeeper.set.acl": "true"}
    service = BrokerConfig.of({"zookeeper.connect": "localhost:2181", **keys}).metadata_service
    assert service is not None
    found = zookeeper_security(service)
    assert found is not None
    return found


async def opened(ensemble: Ensemble, found: ZookeeperSecurity, timeout_ms: int = 30_000) -> TreeStore:
    connect = f"localhost:{ensemble.ports[0]}/owned"
    return await open_zookeeper(
        connect, SystemClock(), session_timeout_ms=10_000, connection_timeout_ms=timeout_ms, security=found
    )


def test_what_a_broker_makes_is_its_principals(realm: Realm, ensemble: Ensemble) -> None:
    async def test() -> None:
        store = await opened(ensemble, security(realm, BROKER))
        epoch = await lead(store, 1)
        await store.append(b"an entry", controller_epoch=epoch)
        store._client.drop_connection()
        await store.register(Registration(3, b"after another login"))
        stranger = KazooClient(f"localhost:{ensemble.ports[0]}/owned")
        stranger.start(30)
        try:
            with pytest.raises(NoAuthError):
                stranger.get("/moldau/log")
            acl, _ = stranger.get_acls("/controller_epoch")
            assert ("sasl", f"{BROKER}@{realm.name}") in {(each.id.scheme, each.id.id) for each in acl}
        finally:
            stranger.stop()
            stranger.close()
        with pytest.raises(StoreError, match="NoAuthError"):
            await opened(ensemble, security(realm, OTHER))
        await store.close()

    run(test)


def test_a_kdc_that_is_away_is_told_and_waited_for(realm: Realm, ensemble: Ensemble) -> None:
    found = security(realm, "late")

    async def test() -> None:
        with pytest.raises(StoreError, match=r"SASL GSSAPI: .*KDC"):
            await opened(ensemble, found, 3_000)

    realm.stop()
    try:
        run(test)
    finally:
        realm.start()


def test_a_key_that_is_not_there_is_told_before_anything_is_asked(realm: Realm, tmp_path: Path) -> None:
    text = f'{MODULE} keyTab="{tmp_path / "none"}" principal="{BROKER}";'
    service = BrokerConfig.of({"zookeeper.connect": "z:2181", "zookeeper.sasl.jaas.config": text}).metadata_service
    assert service is not None
    with pytest.raises(ConfigError) as told:
        zookeeper_security(service)
    assert str(told.value).startswith("zookeeper.sasl.jaas.config: Key table file")
