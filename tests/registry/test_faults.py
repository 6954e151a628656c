"""A registry whose topic, group or pen is spoilt by others: no id is given twice, and nobody has to start it again."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

import moldau
from moldau.client.cluster import Cluster, CoordinatorKind
from moldau.core.clock import SystemClock
from moldau.core.errors import ErrorCode
from moldau.registry.deciding.registering import Candidate, decide_registration
from moldau.registry.service import Registry, Settings
from moldau.registry.storing.electing import Identity, readable
from moldau.registry.storing.topic import prepare
from moldau.registry.storing.writing import Writer
from moldau.schemas.model import SchemaType
from moldau.web.errors import ApiError
from moldau.wire.messages import JoinGroupRequest, JoinGroupResponse
from moldau.wire.messages.join_group import JoinGroupRequestProtocol

pytestmark = pytest.mark.xdist_group("registry")
WAIT_S_MAX = 60.0


def opened(bootstrap: str) -> Cluster:
    return Cluster(bootstrap, client_id="test", timeout_s=20.0)


@asynccontextmanager
async def leading(bootstrap: str, *, read_s_max: float = WAIT_S_MAX) -> AsyncIterator[Registry]:
    name = uuid.uuid4().hex[:8]
    settings = Settings(
        topic=f"_schemas-{name}", group=f"registry-{name}", session_ms=6_000, heartbeat_ms=500, read_s_max=read_s_max
    )

    def prepared() -> None:
        with opened(bootstrap) as cluster:
            prepare(cluster, settings.topic)

    await asyncio.to_thread(prepared)
    registry = Registry(lambda: opened(bootstrap), Identity("localhost", 1), settings)
    await registry.start()
    registry.elect()
    try:
        await registry.wait_for_leader()
        yield registry
    finally:
        await registry.stop()


async def registered(registry: Registry, number: int) -> int:
    text = f'{{"type":"fixed","name":"F{number}","size":{number}}}'
    candidate = Candidate(f"s{number}", text, SchemaType.AVRO)
    return (await registry.write(lambda state: decide_registration(state, candidate, []))).id


async def until(is_so: Callable[[], object]) -> None:
    deadline_s = time.monotonic() + WAIT_S_MAX
    while not is_so():
        assert time.monotonic() < deadline_s
        await asyncio.sleep(0.05)


async def registered_at_last(registry: Registry, number: int) -> int:
    deadline_s = time.monotonic() + WAIT_S_MAX
    while True:
        try:
            return await registered(registry, number)
        except ApiError:
            assert time.monotonic() < deadline_s
            await asyncio.sleep(0.1)


def test_what_was_not_read_back_is_read_before_the_next_decision(bootstrap: str) -> None:
    """A transaction that somebody leaves open keeps readers of committed records before it, and no writer."""

    async def check() -> None:
        async with leading(bootstrap, read_s_max=0.5) as registry:
            assert await registered(registry, 1) == 1
            config = {"bootstrap.servers": bootstrap, "transactional.id": uuid.uuid4().hex}
            other = Producer(config)
            await asyncio.to_thread(other.init_transactions)
            other.begin_transaction()
            other.produce(registry.settings.topic, key=b'{"keytype":"NOOP"}', partition=0)
            await asyncio.to_thread(other.flush)
            with pytest.raises(ApiError, match="the topic was not read up to offset") as refused:
                await registered(registry, 2)
            assert refused.value.code == 50_002
            with pytest.raises(ApiError):
                await registered(registry, 3)
            await asyncio.to_thread(other.abort_transaction)
            await until(lambda: registry.is_leading)
            ids = [await registered_at_last(registry, number) for number in (1, 2, 3, 4)]
            assert ids == [1, 2, 3, 4]
            assert [*registry.state.subjects] == ["s1", "s2", "s3", "s4"]

    asyncio.run(check())


def test_a_topic_that_was_made_anew_takes_no_writes(bootstrap: str) -> None:
    async def check() -> None:
        async with leading(bootstrap) as registry:
            for number in range(1, 6):
                await registered(registry, number)
            admin, topic = AdminClient({"bootstrap.servers": bootstrap}), registry.settings.topic
            await asyncio.to_thread(admin.delete_topics([topic])[topic].result)
            made = NewTopic(topic, 1, 1, config={"cleanup.policy": "compact"})
            await until(lambda: topic not in admin.list_topics(timeout=WAIT_S_MAX).topics)
            await asyncio.to_thread(admin.create_topics([made])[topic].result)
            for number in (7, 8):
                with pytest.raises(ApiError, match="ends before offset 6") as refused:
                    await registered(registry, number)
                assert refused.value.code == 50_001
            assert "made anew" in registry.problems[0]
            assert registry.state.get("s5", 1) is not None, "it may be the only copy"

    asyncio.run(check())


def test_a_topic_that_is_gone_is_told(bootstrap: str) -> None:
    async def check() -> None:
        async with leading(bootstrap) as registry:
            await registered(registry, 1)
            assert not registry.problems
            admin, topic = AdminClient({"bootstrap.servers": bootstrap}), registry.settings.topic
            await asyncio.to_thread(admin.delete_topics([topic])[topic].result)
            await until(lambda: registry.problems)
            assert "is not there" in registry.problems[0]

    asyncio.run(check())


def test_a_broker_that_is_back_is_enough_to_be_ready(tmp_path: Path) -> None:
    """Nothing is written meanwhile: nobody would be sent to instances that are not ready."""

    async def check() -> None:
        broker = moldau.run(data_dir=tmp_path)
        try:
            port = int(broker.bootstrap_servers.rpartition(":")[2])
            async with leading(broker.bootstrap_servers) as registry:
                await registered(registry, 1)
                await asyncio.to_thread(broker.stop)
                await until(lambda: registry.problems)
                broker = await asyncio.to_thread(lambda: moldau.run(data_dir=tmp_path, port=port))
                await until(lambda: not registry.problems)
        finally:
            broker.stop()

    asyncio.run(check())


def test_a_leader_that_was_fenced_leads_again(bootstrap: str) -> None:
    """As one that was paused while another led, and went."""

    async def check() -> None:
        async with leading(bootstrap) as registry:
            await registered(registry, 1)
            settings = registry.settings
            other = Writer(opened(bootstrap), settings.topic, settings.transactional_id, SystemClock(), timeout_s=20.0)
            await asyncio.to_thread(other.open)
            other.close()
            with pytest.raises(ApiError, match="Leader not known"):
                await registered(registry, 2)
            assert await registered_at_last(registry, 2) == 2

    asyncio.run(check())


def test_a_member_that_says_nonsense_ends_no_election(bootstrap: str) -> None:
    async def check() -> None:
        async with leading(bootstrap) as registry:
            await asyncio.to_thread(_join, bootstrap, registry.settings.group)
            assert await registered_at_last(registry, 1) == 1
            assert registry.problems == []

    def _join(bootstrap: str, group: str) -> None:
        with opened(bootstrap) as cluster:
            connection = cluster.new_connection(cluster.coordinator(CoordinatorKind.GROUP, group))
            try:
                said = [JoinGroupRequestProtocol("v0", b'{"host": "nowhere"}')]
                asked = JoinGroupRequest(group, 6_000, 6_000, "", None, "sr", said)
                answer = connection.ask(asked, JoinGroupResponse)
                if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                    asked = JoinGroupRequest(group, 6_000, 6_000, answer.member_id, None, "sr", said)
                    answer = connection.ask(asked, JoinGroupResponse)
                assert answer.error_code == ErrorCode.NONE
            finally:
                connection.close()

    asyncio.run(check())


def test_members_that_cannot_be_read_are_never_chosen() -> None:
    good = Identity("a", 1)
    said = [("1", b"{}"), ("2", b"[]"), ("3", b"\xff"), ("4", good.encoded()), ("5", b'{"host":"b","port":null}')]
    said += [("6", b'{"host":"b","port":1e999}'), ("7", b'{"host":"b","port":65536}')]
    said += [("8", b'{"host":"a b","port":1}'), ("9", b'{"host":"","port":1}')]
    assert readable(said) == {"4": good}


@pytest.mark.parametrize(
    "poison",
    [
        {"md5": 5},
        {"metadata": ["a"]},
        {"references": [{"name": 1, "subject": "a", "version": 1}]},
        {"id": float("inf")},
    ],
    ids=["md5", "metadata", "references", "infinite"],
)
def test_a_record_that_nobody_can_use_is_passed_over(bootstrap: str, poison: dict[str, object]) -> None:
    async def check() -> None:
        async with leading(bootstrap) as registry:
            key = {"keytype": "SCHEMA", "subject": "p", "version": 1, "magic": 1}
            value = {"subject": "p", "version": 1, "id": 7, "schema": '"int"', **poison}
            producer = Producer({"bootstrap.servers": bootstrap})
            for each in (value, value):
                producer.produce(registry.settings.topic, key=json.dumps(key), value=json.dumps(each), partition=0)
            await asyncio.to_thread(producer.flush)
            assert await registered(registry, 1) == 1
            assert registry.state.names == ["s1"], "nothing is left of it"

    asyncio.run(check())
