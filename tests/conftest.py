"""A broker for every test that asks for one, and a ZooKeeper ensemble; `--broker` says whose broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.brokers import running_broker
from tests.kerberos import Realm, running_realm
from tests.store import ensemble as zookeeper
from tests.store import etcd_cluster as etcd
from tests.store.ensemble import Ensemble, running_ensemble
from tests.store.etcd_cluster import EtcdCluster, running_cluster

# A busy machine takes longer for one example than the 200 ms that are allowed otherwise.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--broker",
        default="moldau",
        help="which broker the tests over the wire talk to: moldau, apache, three of them such as moldau*3, "
        "or the HOST:PORT of one that runs already",
    )


@pytest.fixture(scope="session")
def broker_kind(request: pytest.FixtureRequest) -> str:
    return str(request.config.getoption("--broker"))


@pytest.fixture(scope="session")
def bootstrap(broker_kind: str) -> Iterator[str]:
    """A broker with its default configuration, one per test run."""
    with running_broker(broker_kind) as address:
        yield address


@pytest.fixture(scope="session")
def ensemble(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ensemble]:
    """Three ZooKeeper servers, one ensemble per test run; tests that use it belong to the group `store`."""
    if not zookeeper.is_available():
        pytest.skip("a ZooKeeper ensemble needs Java, and Maven the first time")
    with running_ensemble(tmp_path_factory.mktemp("zookeeper")) as running:
        yield running


@pytest.fixture(scope="session")
def etcd_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    """Three etcd servers, one cluster per test run; tests that use it belong to the group `store`."""
    if not etcd.is_available():
        pytest.skip("an etcd cluster needs etcd, or apt-get to fetch it")
    with running_cluster(tmp_path_factory.mktemp("etcd")) as running:
        yield running


@pytest.fixture(scope="module")
def realm() -> Iterator[Realm]:
    """A Kerberos realm with its KDC, which starts in no time; see `tests.kerberos.in_realm`."""
    with running_realm() as running:
        yield running
