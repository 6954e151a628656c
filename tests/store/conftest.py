"""The stores that the suite runs on; each test has a file, or a chroot of the run's servers, of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.store.kinds import EtcdKind, Kind, SqliteKind, ZookeeperKind


@pytest.fixture(params=["sqlite", "zookeeper", pytest.param("etcd", marks=pytest.mark.long)])
def kind(request: pytest.FixtureRequest, tmp_path: Path) -> Kind:
    if request.param == "sqlite":
        return SqliteKind(tmp_path / "store.db")
    if request.param == "etcd":
        return EtcdKind(request.getfixturevalue("etcd_cluster").connect)
    return ZookeeperKind(request.getfixturevalue("ensemble").connect)
