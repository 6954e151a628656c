"""Three brokers whose metadata is in etcd, one of which is killed."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.cluster.asking import until
from tests.cluster.members import chroot, three_members, values_of, writing
from tests.store.etcd_cluster import EtcdCluster

pytestmark = [pytest.mark.xdist_group("store"), pytest.mark.long]

ALL = frozenset({1, 2, 3})
SESSION_S = 18.0


def test_a_killed_controller_is_replaced_long_before_its_session_ends(
    etcd_cluster: EtcdCluster, tmp_path: Path
) -> None:
    connects = dict.fromkeys(ALL, etcd_cluster.connect + chroot())
    session_ms = int(SESSION_S * 1_000)
    with three_members(tmp_path, connects, service="etcd", broker_session_timeout_ms=session_ms) as cluster:
        cluster.create_topic("kept", partitions=3, replication_factor=3, config={"min.insync.replicas": 2})
        with writing(cluster.bootstrap_servers, "kept") as writes:
            killed = cluster.controller
            cluster.kill(killed)
            begun_s = time.monotonic()
            until(lambda: cluster.controller not in (killed, -1))
            until(lambda: not {killed, -1} & set(cluster.seen("kept").leaders.values()))
            writes.until_more()
            assert time.monotonic() - begun_s < SESSION_S / 2, "nobody waited for the session"
            cluster.restart(killed)
            until(lambda: set(cluster.seen("kept").in_sync.values()) == {ALL})
        assert sorted(values_of(cluster, "kept", len(writes.acknowledged))) == sorted(writes.acknowledged)
