"""Log directories that were forgotten, moved or robbed of a file: no record is lost without a word."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

import moldau
from moldau.core.ids import TopicPartition
from moldau.embedded import BrokerFailed, EmbeddedBroker
from tests.faults.clients import create_topic, end_offset, read_partition, write
from tests.node.test_command import WAIT_S_MAX, run_to_its_end, started

TOPIC = "orders"
VALUES = [b"one", b"two"]


def running(*folders: Path) -> EmbeddedBroker:
    return moldau.run(data_dir=folders[0], overrides={"log.dirs": ",".join(map(str, folders))})


def filled(*folders: Path) -> Path:
    """The folder of partition 1 of a topic of two partitions with records, after a clean stop."""
    with running(*folders) as broker:
        create_topic(broker.bootstrap_servers, TOPIC, partitions=2)
        for partition in range(2):
            write(broker.bootstrap_servers, TOPIC, VALUES, partition=partition)
    return next(folder / str(TopicPartition(TOPIC, 1)) for folder in folders if (folder / f"{TOPIC}-1").exists())


def delete_topic(bootstrap: str, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for deleted in admin.delete_topics([name]).values():
        deleted.result()


def topics(bootstrap: str) -> set[str]:
    return set(AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=WAIT_S_MAX).topics)


def values_in(bootstrap: str) -> list[list[bytes | None]]:
    return [
        [each.value for each in read_partition(bootstrap, TOPIC, partition)]
        if end_offset(bootstrap, TOPIC, partition)
        else []
        for partition in range(2)
    ]


def test_a_forgotten_folder_is_refused_by_name_until_it_is_given_up(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    home = filled(first, second)
    kept = 0 if home.parent == second else 1
    with pytest.raises(BrokerFailed, match=rf"{second} \(directory\.id .*--accept-lost-log-dirs") as refused:
        running(first)
    assert f"{TOPIC}-" in str(refused.value)
    assert "Traceback" not in str(refused.value)
    with running(first, second) as whole:
        assert values_in(whole.bootstrap_servers) == [VALUES, VALUES]
    shutil.rmtree(second)
    refused_again = run_to_its_end("--port", "0", "--override", f"log.dirs={first},{second}", cwd=tmp_path)
    assert str(second) in refused_again.stderr, "a new and empty folder in the place of the old one is not the old one"
    assert refused_again.returncode == 1
    with started("--data-dir", str(first), "--accept-lost-log-dirs", cwd=tmp_path) as (broker, port):
        assert values_in(f"127.0.0.1:{port}")[kept] == VALUES
        assert values_in(f"127.0.0.1:{port}")[1 - kept] == []
        broker.terminate()
        broker.wait(WAIT_S_MAX)
    running(first).stop()


def test_without_the_folder_of_the_metadata_the_others_are_refused(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    filled(first, second)
    first.rename(tmp_path / "elsewhere")
    for folders in ([second], [first, second]):
        with pytest.raises(BrokerFailed, match=rf"{first}/moldau-metadata\.db.*--accept-lost-log-dirs"):
            running(*folders)
    shutil.rmtree(first, ignore_errors=True)
    (tmp_path / "elsewhere").rename(first)
    with running(second, first) as broker:
        assert values_in(broker.bootstrap_servers) == [VALUES, VALUES]
    with started("--data-dir", str(second), "--accept-lost-log-dirs", cwd=tmp_path) as (_, port):
        assert sorted(values_in(f"127.0.0.1:{port}"))[-1] == VALUES
    running(second).stop()


def test_a_topic_whose_folders_a_crash_left_unmade_begins_empty(tmp_path: Path) -> None:
    shutil.rmtree(filled(tmp_path / "only"))
    with running(tmp_path / "only") as broker:
        assert "orders-1" in broker.output()
        assert values_in(broker.bootstrap_servers) == [VALUES, []]


def test_folders_in_another_order_are_the_same_broker(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    filled(first, second)
    with running(second, first) as broker:
        assert values_in(broker.bootstrap_servers) == [VALUES, VALUES]
    assert not (second / "moldau-metadata.db").exists()


def test_a_lost_meta_properties_is_made_anew_for_the_same_cluster(tmp_path: Path) -> None:
    folder = tmp_path / "only"
    filled(folder)
    lost = dict(line.split("=") for line in (folder / "meta.properties").read_text().splitlines())
    (folder / "meta.properties").unlink()
    with running(folder) as broker:
        assert values_in(broker.bootstrap_servers) == [VALUES, VALUES]
    found = dict(line.split("=") for line in (folder / "meta.properties").read_text().splitlines())
    assert found["cluster.id"] == lost["cluster.id"]


def test_the_last_topic_stays_deleted_when_the_broker_died_before_its_folder_went(tmp_path: Path) -> None:
    folder, kept = tmp_path / "data", tmp_path / "kept"
    with running(folder) as broker:
        create_topic(broker.bootstrap_servers, TOPIC, partitions=1)
        write(broker.bootstrap_servers, TOPIC, VALUES)
        shutil.copytree(folder / f"{TOPIC}-0", kept)
        delete_topic(broker.bootstrap_servers, TOPIC)
    kept.rename(folder / f"{TOPIC}-0")
    with running(folder) as broker:
        assert topics(broker.bootstrap_servers) == set()


def test_folders_without_metadata_are_adopted_with_a_later_leader_epoch(tmp_path: Path) -> None:
    home = filled(tmp_path / "data")
    for path in home.parent.glob("moldau-metadata.db*"):
        path.unlink()
    (home / "leader-epoch-checkpoint").write_text("0\n1\n7 0\n")
    with running(home.parent) as broker:
        assert values_in(broker.bootstrap_servers) == [VALUES, VALUES]
        write(broker.bootstrap_servers, TOPIC, [b"three"], partition=1)
    assert (home / "leader-epoch-checkpoint").read_text() == "0\n2\n7 0\n8 2\n"
