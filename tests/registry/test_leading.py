"""Several instances: one writes. Killed or paused in the middle of a word, it never gives an id a second time."""

from __future__ import annotations

import os
import signal
import threading
import time
import urllib.request
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from moldau.client.cluster import Cluster
from moldau.core.clock import SystemClock
from moldau.registry.records import Entry, StoredSchema
from moldau.registry.storing.electing import Identity, assignment, chosen
from moldau.registry.storing.topic import UnfitTopic, prepare
from moldau.registry.storing.writing import Fenced, Writer
from tests.registry.running import WAIT_S_MAX, RunningRegistry, running_registry

pytestmark = pytest.mark.xdist_group("registry")


@pytest.fixture
def three(bootstrap: str, tmp_path: Path) -> Iterator[list[RunningRegistry]]:
    name, config = uuid.uuid4().hex[:8], tmp_path / "registry.properties"
    lines = [f"kafkastore.topic=_schemas-{name}", f"schema.registry.group.id=registry-{name}"]
    lines.append("leader.session.timeout.ms=6000")  # brokers allow no less
    config.write_text("\n".join(lines))
    with ExitStack() as stack:
        yield [stack.enter_context(running_registry(bootstrap, "--config", str(config))) for _ in range(3)]


def wait(is_so: Callable[[], object]) -> None:
    deadline_s = time.monotonic() + WAIT_S_MAX
    while not is_so():
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


def leads(registry: RunningRegistry) -> bool:
    with urllib.request.urlopen(f"{registry.url}/metrics", timeout=WAIT_S_MAX) as answer:
        return b"moldau_registry_is_leader 1" in answer.read()


def leader_of(registries: list[RunningRegistry]) -> RunningRegistry:
    wait(lambda: sum(map(leads, registries)) == 1)
    return next(each for each in registries if leads(each))


def schema(number: int) -> dict[str, str]:
    return {"schema": f'{{"type":"fixed","name":"F{number}","size":{number + 1}}}'}


def test_anybody_takes_writes_and_reads_them_at_once(three: list[RunningRegistry]) -> None:
    leader_of(three)
    for number, each in enumerate(three):
        status, answer = each.ask("POST", f"/subjects/s{number}/versions", schema(number))
        assert (status, answer["id"]) == (200, number + 1)
        assert each.ask("GET", f"/schemas/ids/{number + 1}")[0] == 200, "read by whoever wrote it"


def test_forwarded_requests_go_no_further(three: list[RunningRegistry]) -> None:
    leader = leader_of(three)
    other = next(each for each in three if each is not leader)
    status, answer = other.ask("POST", "/subjects/s/versions", schema(1), **{"X-Forward": "true"})
    assert (status, answer["error_code"]) == (500, 50_004)


def test_registries_of_two_topics_in_one_group_do_not_mix(bootstrap: str, tmp_path: Path) -> None:
    name, config = uuid.uuid4().hex[:8], tmp_path / "registry.properties"
    config.write_text(f"schema.registry.group.id=registry-{name}")
    with ExitStack() as stack:
        both = [
            stack.enter_context(running_registry(bootstrap, "--config", str(config), "--topic", f"_{topic}-{name}"))
            for topic in "ab"
        ]
        leader = leader_of(both)
        other = next(each for each in both if each is not leader)
        status, answer = other.ask("POST", "/subjects/s/versions", schema(1))
        assert (status, answer["error_code"]) == (500, 50_003)
        assert f"_a-{name}" in answer["message"]
        assert f"_b-{name}" in answer["message"]
        assert leader.ask("GET", "/subjects") == (200, [])


@pytest.mark.parametrize(
    "blow", [signal.SIGKILL, pytest.param(signal.SIGSTOP, marks=pytest.mark.long)], ids=["kill", "stop"]
)
def test_a_leader_is_struck_down_under_load(three: list[RunningRegistry], blow: signal.Signals) -> None:
    leader = leader_of(three)
    others = [each for each in three if each is not leader]
    given: dict[int, int] = {}
    is_over = threading.Event()
    counter, lock = iter(range(100_000)), threading.Lock()

    def load(registry: RunningRegistry) -> None:
        while not is_over.is_set():
            with lock:
                number = next(counter)
            status, answer = registry.ask("POST", f"/subjects/s{number}/versions", schema(number))
            if status == 200:
                given[number] = answer["id"]

    threads = [threading.Thread(target=load, args=[each]) for each in (*others, *others)]
    for each in threads:
        each.start()
    try:
        wait(lambda: len(given) > 50)
        os.kill(leader.process.pid, blow)
        wait(lambda: sum(map(leads, others)) == 1)
        before = len(given)
        wait(lambda: len(given) > before + 50)
        if blow is signal.SIGSTOP:
            os.kill(leader.process.pid, signal.SIGCONT)
            wait(lambda: not leads(leader))
    finally:
        is_over.set()
        if leader.process.poll() is None:
            os.kill(leader.process.pid, signal.SIGCONT)
        for each in threads:
            each.join(WAIT_S_MAX)
    assert not [each for each, count in Counter(given.values()).items() if count > 1], "an id was given twice"
    for registry in others if blow is signal.SIGKILL else three:
        for number, schema_id in given.items():
            assert registry.ask("GET", f"/subjects/s{number}/versions/1")[1]["id"] == schema_id


def test_registrations_wait_for_a_leader_that_is_started_again_at_its_place(bootstrap: str, tmp_path: Path) -> None:
    """As supervisors do: while it may not lead yet, it refuses what is sent on to it, and it is the next leader."""
    name, configs = uuid.uuid4().hex[:8], [tmp_path / "leader.properties", tmp_path / "other.properties"]
    for each in configs:
        lines = [f"kafkastore.topic=_schemas-{name}", f"schema.registry.group.id=registry-{name}"]
        lines += ["leader.session.timeout.ms=6000", f"leader.eligibility={each is configs[0]}"]
        each.write_text("\n".join(lines))
    with ExitStack() as stack:
        two = [stack.enter_context(running_registry(bootstrap, "--config", str(each))) for each in configs]
        leader, other = two
        assert leader_of(two) is leader
        leader.process.kill()
        leader.process.wait()
        port = int(leader.url.rpartition(":")[2])
        with ThreadPoolExecutor() as threads:
            before = threads.submit(other.ask, "POST", "/subjects/before/versions", schema(1))
            again = stack.enter_context(running_registry(bootstrap, "--config", str(configs[0]), port=port))
            assert again.ask("POST", "/subjects/there/versions", schema(2))[0] == 200
            assert other.ask("POST", "/subjects/behind/versions", schema(3))[0] == 200
            assert before.result()[0] == 200


def test_an_old_leaders_pen_is_dry(bootstrap: str) -> None:
    """Paused between its decision and its write, which is the moment that no check of a session covers."""
    topic = f"_schemas-{uuid.uuid4().hex[:8]}"
    entry = Entry((stored := StoredSchema("a", 1, 1, '"int"')).key, stored)

    def opened() -> Writer:
        cluster = Cluster(bootstrap, client_id="test", timeout_s=20.0)
        return Writer(cluster, topic, f"{topic}-leader", SystemClock(), timeout_s=20.0)

    with Cluster(bootstrap, client_id="test", timeout_s=20.0) as cluster:
        prepare(cluster, topic, 1)
    old, new = opened(), opened()
    try:
        assert old.open() == 0
        assert old.append([entry]) == 1
        assert new.open() == 2
        with pytest.raises(Fenced):
            old.append([entry])
        assert new.append([entry, entry]) == 4, "nothing came between"
    finally:
        old.close()
        new.close()


def test_topics_that_would_lose_schemas_are_refused(bootstrap: str) -> None:
    name = uuid.uuid4().hex[:8]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    made = admin.create_topics([NewTopic(f"many-{name}", 2, 1), NewTopic(f"short-{name}", 1, 1)])
    for each in made.values():
        each.result(20)
    with Cluster(bootstrap, client_id="test", timeout_s=20.0) as cluster:
        with pytest.raises(UnfitTopic, match="has 2 partitions"):
            prepare(cluster, f"many-{name}")
        with pytest.raises(UnfitTopic, match=r"cleanup\.policy=delete"):
            prepare(cluster, f"short-{name}")


A, B, C = (Identity("host", port) for port in (1, 2, 3))


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({"x": B, "y": A}, "y"),
        ({"x": B, "y": Identity("host", 1, master_eligibility=False)}, "x"),
        ({"x": Identity("host", 2, leader=True), "y": A}, "x"),
        ({"x": Identity("host", 2, leader=True), "y": Identity("host", 1, leader=True)}, "y"),
        ({"x": Identity("host", 1, master_eligibility=False)}, None),
    ],
)
def test_who_is_chosen(members: dict[str, Identity], expected: str | None) -> None:
    found = chosen(members)
    assert (found and found[0]) == expected


def test_twins_are_told() -> None:
    assert b'"error": 1' in assignment({"x": A, "y": A})
    assert b'"error": 0' in assignment({"x": A, "y": B})
