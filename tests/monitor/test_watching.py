"""Looks at a real broker, with a clock that is set: what stops, what waits, what is known after a restart."""

from __future__ import annotations

import logging
import socket
import sqlite3
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

import moldau
from moldau.cli.wire import cluster_of
from moldau.client.cluster import Cluster, NoAnswer
from moldau.core.errors import ErrorCode
from moldau.monitor.history import History, UnusableHistory
from moldau.monitor.judging import Rules
from moldau.monitor.rules import Status
from moldau.monitor.sampling.commits import OFFSETS_TOPIC
from moldau.monitor.sampling.first_unread import FirstUnread
from moldau.monitor.watching import Watch
from tests.monitor.worlds import ShiftedClock, commit, looked, partition, produce, verdict, watch_of

MINUTE_MS = 60_000


def test_seconds_of_lag_are_those_of_the_first_unread_record(bootstrap: str, topic: str, group: str) -> None:
    clock = ShiftedClock()
    now_ms = clock.now_ms()
    # Out of order, and in the past or the future: what counts is the record at the committed offset.
    times = [now_ms - each * 1_000 for each in (500, 100, 7_000, 3, -60)]
    produce(bootstrap, topic, {0: times, 1: times})
    watch = watch_of(bootstrap, clock, group)
    for offset, seconds in ((0, 500), (1, 100), (2, 7_000), (3, 3), (4, 0), (5, 0)):
        commit(bootstrap, group, topic, {0: offset})
        found = looked(watch, group)
        assert partition(found, 0).current_lag == 5 - offset
        waiting = partition(found, 0).lag_seconds
        assert waiting is not None
        at_ms = watch.state.look.at_ms if watch.state else 0
        expected = max(0.0, (at_ms - times[offset]) / 1_000) if offset < 5 else 0.0
        assert waiting == expected
        assert seconds <= waiting <= seconds + 30
    assert partition(found, 1).lag_seconds is None, "the group has no offset there"
    watch.close()


@pytest.mark.parametrize("codec", ["none", "gzip", "lz4", "zstd"])
def test_the_first_unread_record_may_be_inside_a_batch(bootstrap: str, topic: str, group: str, codec: str) -> None:
    clock = ShiftedClock()
    first_ms = clock.now_ms() - 3_600_000
    settings = {"compression.type": codec, "linger.ms": 200}
    produce(bootstrap, topic, {0: [first_ms + each * 1_000 for each in range(1_000)]}, **settings)
    commit(bootstrap, group, topic, {0: 777})
    watch = watch_of(bootstrap, clock, group)
    found = looked(watch, group)
    assert watch.state is not None
    assert partition(found, 0).lag_seconds == (watch.state.look.at_ms - first_ms - 777_000) / 1_000
    watch.close()


def test_a_batch_that_is_larger_than_a_question_is_read_too(bootstrap: str, topic: str, group: str) -> None:
    clock = ShiftedClock()
    now_ms = clock.now_ms()
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": "none"})
    for number in (0, 1):
        producer.produce(topic, bytes(300_000), partition=number, timestamp=now_ms - 5_000 * (number + 1))
    producer.flush(20)
    commit(bootstrap, group, topic, {0: 0, 1: 0})
    watch = watch_of(bootstrap, clock, group)
    found = looked(watch, group)
    assert [round(each.lag_seconds or 0) // 5 for each in found.partitions] == [1, 2]
    watch.close()


def test_markers_of_transactions_are_no_records_that_wait(bootstrap: str, topic: str, group: str) -> None:
    clock = ShiftedClock()
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"of-{group}"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, "paid", partition=0)
    producer.commit_transaction(30)
    commit(bootstrap, group, topic, {0: 1})
    watch = watch_of(bootstrap, clock, group)
    found = partition(looked(watch, group), 0)
    assert (found.current_lag, found.lag_seconds) == (1, None), "only the marker is left, and it can't be read"
    produce(bootstrap, topic, {0: [clock.now_ms() - 9_000]})
    found = partition(looked(watch, group), 0)
    assert found.current_lag == 2
    assert 9 <= (found.lag_seconds or 0) < 30
    watch.close()


def test_a_stopped_consumer_stops_and_its_lag_goes_on(bootstrap: str, topic: str, group: str) -> None:
    clock = ShiftedClock()
    produce(bootstrap, topic, {0: [clock.now_ms() - 1_000] * 10})
    watch = watch_of(bootstrap, clock, group, rules=Rules(min_distance_s=0))
    for offset in (2, 4, 6):
        commit(bootstrap, group, topic, {0: offset})
    before = looked(watch, group)
    assert [each.offset for each in watch.windows.groups[group][topic][0].commits()] == [2, 4, 6]
    clock.later_ms += MINUTE_MS
    after = looked(watch, group)
    assert (after.status, partition(after, 0).status) == (Status.ERR, Status.STOP)
    grown = (partition(after, 0).lag_seconds or 0) - (partition(before, 0).lag_seconds or 0)
    assert 60 <= grown < 90
    produce(bootstrap, topic, {0: [clock.now_ms()] * 5})
    more = looked(watch, group)
    assert partition(more, 0).current_lag == partition(after, 0).current_lag + 5
    commit(bootstrap, group, topic, {0: 15})
    assert looked(watch, group).status == Status.OK
    watch.close()


def test_a_consumer_that_repeats_an_offset_stalls(bootstrap: str, topic: str, group: str) -> None:
    """Only the topic of commits tells it from one that stopped."""
    clock = ShiftedClock()
    produce(bootstrap, topic, {0: [clock.now_ms()] * 10})
    watch = watch_of(bootstrap, clock, group, rules=Rules(min_distance_s=0))
    assert watch.look()
    for _ in range(3):
        commit(bootstrap, group, topic, {0: 4})
    clock.later_ms = -5_000  # not silent for longer than the window is long
    found = looked(watch, group)
    assert partition(found, 0).status == Status.STALL
    commit(bootstrap, group, topic, {0: 1})
    assert partition(looked(watch, group), 0).status == Status.REWIND
    watch.close()


def test_offsets_are_polled_where_commits_are_not_read(bootstrap: str, topic: str, group: str) -> None:
    clock = ShiftedClock()
    produce(bootstrap, topic, {0: [clock.now_ms() - 4_000] * 10})
    commit(bootstrap, group, topic, {0: 4})
    watch = watch_of(bootstrap, clock, group, read_commits=False)
    found = looked(watch, group)
    assert not watch.looker.reader.can_read
    assert (found.status, found.totallag) == (Status.OK, 6), "nobody knows yet whether it moves"
    assert 4 <= (found.lag_seconds or 0) < 30
    clock.later_ms += 10_000
    assert looked(watch, group).status == Status.OK
    clock.later_ms += 100_000  # as long as a full window takes
    found = looked(watch, group)
    assert (found.status, partition(found, 0).status) == (Status.ERR, Status.STOP)
    commit(bootstrap, group, topic, {0: 7})
    found = looked(watch, group)
    window = watch.windows.groups[group][topic][0]
    assert ([each.offset for each in window.commits()], found.totallag) == ([4, 7], 3)
    watch.close()


def test_groups_of_every_kind_are_seen(bootstrap: str, topic: str, group: str) -> None:
    clock = ShiftedClock()
    produce(bootstrap, topic, {0: [clock.now_ms()], 1: [clock.now_ms()]})
    consumers = {
        f"{group}-{protocol}": Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": f"{group}-{protocol}",
                "group.protocol": protocol,
                "client.id": f"reader-{protocol}",
                "enable.auto.commit": False,
            }
        )
        for protocol in ("classic", "consumer")
    }
    commit(bootstrap, f"{group}-empty", topic, {0: 1})
    watch = watch_of(bootstrap, clock, f"{group}-.*")
    try:
        for consumer in consumers.values():
            consumer.subscribe([topic])
        for _ in range(100):
            for consumer in consumers.values():
                consumer.poll(0.1)
            if all(len(consumer.assignment()) == 2 for consumer in consumers.values()):
                break
        assert watch.look()
        for protocol in ("classic", "consumer"):
            found = verdict(watch, f"{group}-{protocol}")
            assert (found.status, found.totallag, len(found.partitions)) == (Status.OK, 0, 2), "it committed nothing"
            assert {each.client_id for each in found.partitions} == {f"reader-{protocol}"}
            assert watch.state is not None
            assert watch.state.group(f"{group}-{protocol}").type.lower() == protocol
        empty = verdict(watch, f"{group}-empty")
        assert (empty.status, len(empty.partitions)) == (Status.OK, 2)
        assert partition(empty, 0).end is not None
    finally:
        for consumer in consumers.values():
            consumer.close()
        watch.close()


def test_a_restart_goes_on_with_what_was_seen(bootstrap: str, topic: str, group: str, tmp_path: Path) -> None:
    clock = ShiftedClock()
    produce(bootstrap, topic, {0: [clock.now_ms()] * 10})
    clock.later_ms = -60_000  # however late it looks after two commits, the group has not stopped
    rules = Rules(min_distance_s=0)
    history = History(str(tmp_path / "lag.sqlite"))
    watch = watch_of(bootstrap, clock, group, rules=rules, keeper=history)
    assert watch.look()
    for offset in (2, 4):
        commit(bootstrap, group, topic, {0: offset})
    assert watch.look()
    before = watch.windows.groups[group][topic][0].commits()
    positions = dict(watch.looker.reader.positions)
    watch.close()
    history.close()

    commit(bootstrap, group, topic, {0: 6})  # while nobody watches
    history = History(str(tmp_path / "lag.sqlite"))
    clock.later_ms += 3_600_000  # nothing of this would be in what a new monitor reads
    watch = watch_of(bootstrap, clock, group, rules=rules, keeper=history)
    assert watch.windows.groups[group][topic][0].commits() == before
    assert watch.looker.reader.positions == positions
    found = looked(watch, group)
    assert [each.offset for each in watch.windows.groups[group][topic][0].commits()] == [2, 4, 6]
    assert found.status == Status.ERR
    changes = history.changes("local", group, 10)
    assert changes[0].status == Status.ERR
    assert changes[0].lag == 4
    assert watch.look()
    assert len(history.changes("local", group, 10)) == len(changes), "only changes are kept"
    watch.forget(group)
    history.keep("local", watch.windows, watch.looker, [])
    assert "local" not in {*watch.windows.groups}
    watch.close()
    history.close()
    history = History(str(tmp_path / "lag.sqlite"))
    watch = watch_of(bootstrap, clock, group, rules=rules, keeper=history)
    assert watch.windows.groups == {}
    history.close()


def test_a_connection_that_ended_is_made_anew(
    bootstrap: str, topic: str, group: str, caplog: pytest.LogCaptureFixture
) -> None:
    """As a broker ends those whose login is over."""
    commit(bootstrap, group, topic, {0: 0})
    watch = watch_of(bootstrap, ShiftedClock(), group)
    assert watch.look()
    assert watch._cluster is not None
    for each in watch._cluster._connections.values():
        each._socket.shutdown(socket.SHUT_RDWR)
    assert watch.look()
    assert (watch.failure, "can't be looked at" in caplog.text) == (None, False)
    watch.close()


class Unreachable(FirstUnread):
    """Leaders that do not answer, so that the look fails after commits were read."""

    def look(self, *_: object) -> None:
        raise NoAnswer("nobody there")


def test_commits_read_by_a_look_that_failed_are_not_lost(bootstrap: str, topic: str, group: str) -> None:
    watch = watch_of(bootstrap, ShiftedClock(), group, rules=Rules(min_distance_s=0))
    commit(bootstrap, group, topic, {0: 1})
    works, watch.looker.unread = watch.looker.unread, Unreachable()
    assert not watch.look()
    commit(bootstrap, group, topic, {0: 2})
    assert not watch.look()
    watch.looker.unread = works
    assert watch.look()
    assert [each.offset for each in watch.windows.groups[group][topic][0].commits()] == [1, 2]
    watch.close()


def test_what_a_disk_refuses_is_written_later(
    bootstrap: str, topic: str, group: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    commit(bootstrap, group, topic, {0: 0})
    path = str(tmp_path / "lag.sqlite")
    history = History(path)
    watch = watch_of(bootstrap, ShiftedClock(), group, keeper=history)
    with sqlite3.connect(path, isolation_level=None) as other:
        history._file.execute("PRAGMA busy_timeout = 0")
        other.execute("BEGIN IMMEDIATE")
        assert watch.look()
        other.execute("ROLLBACK")
    other.close()
    assert "history of cluster local can't be written: database is locked" in caplog.text
    assert watch.look()
    watch.close()
    history.close()
    history = History(path)
    watch = watch_of(bootstrap, ShiftedClock(), group, keeper=history)
    assert [each.offset for each in watch.windows.groups[group][topic][0].commits()] == [0]
    (change,) = history.changes("local", group, 10)
    assert change.before == Status.NOTFOUND
    assert watch._statuses == {group: change.status}
    history.close()


def test_a_topic_that_is_deleted_is_forgotten(bootstrap: str, topic: str, group: str) -> None:
    commit(bootstrap, group, topic, {0: 0})
    watch = watch_of(bootstrap, ShiftedClock(), group)
    assert len(looked(watch, group).partitions) == 2
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_topics([topic])[topic].result(20)
    deadline_s = time.monotonic() + 20
    while watch.state is not None and topic in watch.state.topics:
        assert time.monotonic() < deadline_s
        assert watch.look()
    assert watch.windows.groups.get(group, {}) == {}
    watch.close()


def test_a_file_of_something_else_is_no_history(tmp_path: Path) -> None:
    path = tmp_path / "lag.sqlite"
    path.write_text("what was seen, in prose, and long enough to be no SQLite file of any kind " * 20)
    with pytest.raises(UnusableHistory, match="can't be used as history"):
        History(str(path))


def test_a_history_that_is_damaged_in_the_middle(tmp_path: Path) -> None:
    path = tmp_path / "lag.sqlite"
    History(str(path)).close()
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 4096)
    with pytest.raises(UnusableHistory, match=r"is damaged (?s:.*) move it away"):
        History(str(path))


def test_a_cluster_that_is_not_there_is_told_once_and_taken_up_again(
    bootstrap: str, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nobody = f"127.0.0.1:{free.getsockname()[1]}"
    servers = [nobody]
    watch = Watch(
        "local", lambda: Cluster(servers[0], client_id="test", timeout_s=2.0), ShiftedClock(), Rules(), interval_s=1.0
    )
    with caplog.at_level(logging.INFO):
        assert [watch.look(), watch.look()] == [False, False]
        assert watch.failure == f"no broker answers at {nobody}"
        assert watch.state is None
        servers[0] = bootstrap
        assert watch.look()
    assert watch.failure is None
    told = [each.getMessage() for each in caplog.records if "cluster local" in each.getMessage()]
    assert told[0] == f"cluster local can't be looked at: no broker answers at {nobody}"
    assert told[1] == "cluster local answers again"
    watch.close()


def allowed(broker: moldau.EmbeddedBroker, *bindings: tuple[ResourceType, str, AclOperation]) -> None:
    admin = AdminClient(broker.clients.confluent)
    acls = [
        AclBinding(kind, name, ResourcePatternType.LITERAL, "User:watcher", "*", operation, AclPermissionType.ALLOW)
        for kind, name, operation in bindings
    ]
    for each in admin.create_acls(acls).values():
        each.result(20)


def test_what_is_forbidden_is_told_and_the_rest_goes_on(
    moldau_secure_broker: moldau.EmbeddedBroker, moldau_topic: str, group: str, caplog: pytest.LogCaptureFixture
) -> None:
    """As rights come, one by one: groups, topics, records, and `__consumer_offsets` at last."""
    broker, clock = moldau_secure_broker, ShiftedClock()
    own = broker.clients.confluent
    broker.create_topic(moldau_topic)
    produce(own["bootstrap.servers"], moldau_topic, {0: [clock.now_ms() - 7_000] * 3}, **own)
    commit(own["bootstrap.servers"], group, moldau_topic, {0: 1}, **own)
    settings = broker.add_user("watcher", "a secret").confluent
    watch = Watch(
        "local",
        lambda: cluster_of({"client.id": "test", **settings}, timeout_s=10.0),
        clock,
        Rules(),
        interval_s=10.0,
    )
    assert watch.look()
    assert watch.state is not None
    assert (watch.state.verdicts, watch.state.topics) == ({}, [])

    allowed(broker, (ResourceType.GROUP, group, AclOperation.DESCRIBE))
    assert looked(watch, group).partitions == (), "topics that may not be seen are not there"

    allowed(broker, (ResourceType.TOPIC, moldau_topic, AclOperation.DESCRIBE))
    found = looked(watch, group)
    assert (found.totallag, found.lag_seconds, watch.looker.reader.can_read) == (2, None, False)
    assert f"records of {moldau_topic}: {ErrorCode.TOPIC_AUTHORIZATION_FAILED.message}" in caplog.text

    allowed(broker, (ResourceType.TOPIC, moldau_topic, AclOperation.READ))
    assert 7 <= (looked(watch, group).lag_seconds or 0) < 40
    assert watch.state.look.problems == ()

    allowed(broker, (ResourceType.TOPIC, OFFSETS_TOPIC, AclOperation.DESCRIBE))
    assert looked(watch, group).totallag == 2
    assert (watch.looker.reader.can_read, caplog.text.count(OFFSETS_TOPIC)) == (False, 1)
    assert looked(watch, group).totallag == 2
    assert caplog.text.count(OFFSETS_TOPIC) == 1, "told once"

    allowed(broker, (ResourceType.TOPIC, OFFSETS_TOPIC, AclOperation.READ))
    clock.later_ms += 2_000  # rules have whole seconds
    found = looked(watch, group)
    assert (watch.looker.reader.can_read, partition(found, 0).status) == (True, Status.STOP)
    watch.close()
