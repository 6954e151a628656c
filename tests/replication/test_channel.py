"""Questions to another broker: what comes back, what is told when nothing does, and how it is tried again."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager

import pytest

import moldau
from moldau.core.errors import ErrorCode
from moldau.embedded.broker import EmbeddedBroker
from moldau.embedded.process import Address
from moldau.replication.channel import (
    BrokerChannel,
    BrokerChannels,
    ChannelError,
    TimedOut,
    Unreachable,
    ask_while,
)
from moldau.wire.messages import ApiVersionsRequest, FetchRequest, MetadataRequest, ProduceRequest
from moldau.wire.messages.fetch import FetchPartition, FetchTopic
from moldau.wire.messages.metadata import MetadataRequestTopic
from moldau.wire.messages.produce import PartitionProduceData, TopicProduceData
from tests.coordinator.loops import on_a_loop
from tests.log.samples import batch

BROKER = 7
TIMEOUT_MS = 15_000
VERSIONS_ASKED = ApiVersionsRequest(client_software_name="moldau", client_software_version="1")
API_VERSIONS, METADATA, FETCH, PRODUCE = 3, 12, 12, 9


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with moldau.run(overrides={"num.partitions": 1}) as running:
        yield running


@asynccontextmanager
async def channel_to(
    address: Address | None, *, told: list[int] | None = None, response_bytes_max: int = 2**20 * 64
) -> AsyncIterator[BrokerChannel]:
    channel = BrokerChannel(
        BROKER,
        lambda broker_id: address,
        client_id="broker-1",
        on_unreachable=(told if told is not None else []).append,
        jitter=lambda: 0.5,
        response_bytes_max=response_bytes_max,
    )
    try:
        yield channel
    finally:
        await channel.close()


def address_of(broker: EmbeddedBroker) -> Address:
    return Address(broker.host, broker.port)


def long_poll(wait_ms: int, *, topic: str = "nothing", bytes_min: int = 1) -> FetchRequest:
    wanted = FetchTopic(topic, partitions=[FetchPartition(0, partition_max_bytes=64 * 2**20)])
    return FetchRequest(max_wait_ms=wait_ms, min_bytes=bytes_min, max_bytes=64 * 2**20, topics=[wanted])


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def peer(serve: Serve) -> AsyncIterator[Address]:
    """Somebody who is no broker of ours."""
    writers = []

    async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        await serve(reader, writer)

    server = await asyncio.start_server(accepted, "127.0.0.1", 0)
    try:
        yield Address(*server.sockets[0].getsockname())
    finally:
        server.close()
        for writer in writers:
            writer.close()
        await server.wait_closed()


def refused_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
    return port


@on_a_loop
async def test_an_answer_is_the_decoded_response(broker: EmbeddedBroker) -> None:
    async with channel_to(address_of(broker)) as channel:
        answer = await channel.ask(MetadataRequest(topics=[]), METADATA, timeout_ms=TIMEOUT_MS)
    assert [each.port for each in answer.brokers] == [broker.port]


@on_a_loop
async def test_questions_follow_each_other_and_each_gets_its_own_answer(broker: EmbeddedBroker) -> None:
    async with channel_to(address_of(broker)) as channel:
        names = [f"unknown-{number}" for number in range(200)]
        asked = [
            channel.ask(
                MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False),
                METADATA,
                timeout_ms=TIMEOUT_MS,
            )
            for name in names
        ]
        answers = await asyncio.gather(*asked)
    assert [answer.topics[0].name for answer in answers] == names


@on_a_loop
async def test_large_and_small_answers_on_one_connection(broker: EmbeddedBroker) -> None:
    """Around the size of the buffer for small ones, and far above it."""
    broker.create_topic("large", config={"max.message.bytes": 16 * 2**20})
    values = [os.urandom(size) for size in (10, 16_200, 16_300, 16_384, 16_500, 70_000, 9 * 2**20)]
    async with channel_to(address_of(broker)) as channel:
        for value in values:
            sent = TopicProduceData(name="large", partition_data=[PartitionProduceData(0, batch([value]))])
            made = await channel.ask(
                ProduceRequest(acks=-1, timeout_ms=TIMEOUT_MS, topic_data=[sent]), PRODUCE, timeout_ms=TIMEOUT_MS
            )
            assert made.responses[0].partition_responses[0].error_code == ErrorCode.NONE
        asked = []
        for offset in range(len(values)):
            wanted = FetchPartition(0, fetch_offset=offset, partition_max_bytes=1)
            request = FetchRequest(max_wait_ms=0, max_bytes=1, topics=[FetchTopic("large", partitions=[wanted])])
            asked.append(channel.ask(request, FETCH, timeout_ms=TIMEOUT_MS))
        answers = await asyncio.gather(*asked)
    for value, answer in zip(values, answers, strict=True):
        assert value in bytes(answer.responses[0].partitions[0].records)


@on_a_loop
async def test_a_port_that_refuses_is_unreachable_and_told() -> None:
    told: list[int] = []
    async with channel_to(Address("127.0.0.1", refused_port()), told=told) as channel:
        with pytest.raises(Unreachable, match=r"broker 7 can't be reached: .*refused"):
            await channel.ask(VERSIONS_ASKED, API_VERSIONS, timeout_ms=TIMEOUT_MS)
    assert told == [BROKER]


@on_a_loop
async def test_pauses_between_attempts_grow() -> None:
    loop = asyncio.get_running_loop()
    paused_s = []
    async with channel_to(Address("127.0.0.1", refused_port())) as channel:
        for _ in range(4):
            begun_s = loop.time()
            with pytest.raises(Unreachable):
                await channel.ask(VERSIONS_ASKED, API_VERSIONS, timeout_ms=TIMEOUT_MS)
            paused_s.append(loop.time() - begun_s)
    assert [pause >= least for pause, least in zip(paused_s, (0, 0.045, 0.095, 0.195), strict=True)] == [True] * 4


@on_a_loop
async def test_a_question_that_waits_for_a_pause_ends_in_time() -> None:
    async with channel_to(Address("127.0.0.1", refused_port())) as channel:
        for _ in range(3):
            with pytest.raises(Unreachable):
                await channel.ask(VERSIONS_ASKED, API_VERSIONS, timeout_ms=TIMEOUT_MS)
        with pytest.raises(TimedOut):
            await channel.ask(VERSIONS_ASKED, API_VERSIONS, timeout_ms=1)


@on_a_loop
async def test_a_broker_that_is_in_no_image_is_no_evidence() -> None:
    told: list[int] = []
    async with channel_to(None, told=told) as channel:
        with pytest.raises(ChannelError, match="not in the cluster") as raised:
            await channel.ask(VERSIONS_ASKED, API_VERSIONS, timeout_ms=TIMEOUT_MS)
    assert not isinstance(raised.value, Unreachable)
    assert told == []


@on_a_loop
async def test_no_answer_in_time_is_no_evidence_and_ends_what_is_behind() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    told: list[int] = []
    async with peer(silent) as address, channel_to(address, told=told) as channel:
        behind = asyncio.ensure_future(channel.ask(VERSIONS_ASKED, API_VERSIONS, timeout_ms=TIMEOUT_MS))
        with pytest.raises(TimedOut, match="did not answer ApiVersionsRequest in 30 ms"):
            await channel.ask(VERSIONS_ASKED, API_VERSIONS, timeout_ms=30)
        with pytest.raises(TimedOut):
            await behind
    assert told == []


@on_a_loop
async def test_a_broker_that_is_killed_is_unreachable_and_asked_again_when_it_is_back() -> None:
    told: list[int] = []
    with moldau.run() as mortal:
        mortal.create_topic("nothing")
        async with channel_to(address_of(mortal), told=told) as channel:
            await channel.ask(VERSIONS_ASKED, API_VERSIONS, timeout_ms=TIMEOUT_MS)
            waiting = asyncio.ensure_future(channel.ask(long_poll(TIMEOUT_MS), FETCH, timeout_ms=TIMEOUT_MS * 2))
            await asyncio.sleep(0.05)
            await asyncio.to_thread(mortal.kill)
            with pytest.raises(Unreachable):
                await waiting
            assert told == [BROKER]
            with pytest.raises(Unreachable):
                await channel.ask(VERSIONS_ASKED, API_VERSIONS, timeout_ms=TIMEOUT_MS)
            assert told == [BROKER, BROKER]
            await asyncio.to_thread(mortal.restart)
            answer = await channel.ask(VERSIONS_ASKED, API_VERSIONS, timeout_ms=TIMEOUT_MS)
    assert answer.error_code == ErrorCode.NONE


@on_a_loop
async def test_closing_fails_what_is_pending_and_what_comes_later(broker: EmbeddedBroker) -> None:
    async with channel_to(address_of(broker)) as channel:
        await channel.ask(VERSIONS_ASKED, API_VERSIONS, timeout_ms=TIMEOUT_MS)
        waiting = asyncio.ensure_future(channel.ask(long_poll(TIMEOUT_MS), FETCH, timeout_ms=TIMEOUT_MS))
        await asyncio.sleep(0)
        await channel.close()
        with pytest.raises(ChannelError, match="was closed"):
            await waiting
        with pytest.raises(ChannelError, match="was closed"):
            await channel.ask(VERSIONS_ASKED, API_VERSIONS, timeout_ms=TIMEOUT_MS)


@on_a_loop
async def test_closing_while_it_connects() -> None:
    async with channel_to(Address("127.0.0.1", refused_port())) as channel:
        with pytest.raises(Unreachable):
            await channel.ask(VERSIONS_ASKED, API_VERSIONS, timeout_ms=TIMEOUT_MS)
        waiting = asyncio.ensure_future(channel.ask(VERSIONS_ASKED, API_VERSIONS, timeout_ms=TIMEOUT_MS))
        await asyncio.sleep(0)
        await channel.close()
        with pytest.raises(ChannelError, match="was closed"):
            await waiting


@on_a_loop
async def test_one_who_gives_up_leaves_the_answers_of_others_in_order(broker: EmbeddedBroker) -> None:
    broker.create_topic("quiet")
    async with channel_to(address_of(broker)) as channel:
        given_up = asyncio.ensure_future(channel.ask(long_poll(200, topic="quiet"), FETCH, timeout_ms=TIMEOUT_MS))
        behind = asyncio.ensure_future(
            channel.ask(MetadataRequest(topics=[]), METADATA, timeout_ms=TIMEOUT_MS),
        )
        await asyncio.sleep(0.05)
        given_up.cancel()
        assert (await behind).brokers
        with pytest.raises(asyncio.CancelledError):
            await given_up


@pytest.mark.parametrize("size", [-1, 0, 3, 1_000_001, 2**31 - 1])
@on_a_loop
async def test_a_frame_of_a_size_that_may_not_be_ends_the_connection(size: int) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(4)
        writer.write(size.to_bytes(4, "big", signed=True))

    async with peer(serve) as address, channel_to(address, response_bytes_max=1_000_000) as channel:
        with pytest.raises(ChannelError, match=f"broker 7 sent a frame of {size} bytes"):
            await channel.ask(VERSIONS_ASKED, API_VERSIONS, timeout_ms=TIMEOUT_MS)


@on_a_loop
async def test_an_answer_to_another_question_ends_the_connection() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(4)
        writer.write((4).to_bytes(4, "big") + (5).to_bytes(4, "big"))

    async with peer(serve) as address, channel_to(address) as channel:
        with pytest.raises(ChannelError, match="answered question 5, not 0"):
            await channel.ask(VERSIONS_ASKED, API_VERSIONS, timeout_ms=TIMEOUT_MS)


@on_a_loop
async def test_bytes_that_are_no_response_end_the_connection() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(4)
        writer.write((5).to_bytes(4, "big") + (0).to_bytes(4, "big") + b"x")

    async with peer(serve) as address, channel_to(address) as channel:
        with pytest.raises(ChannelError, match="broker 7 sent no ApiVersionsResponse v3"):
            await channel.ask(VERSIONS_ASKED, API_VERSIONS, timeout_ms=TIMEOUT_MS)


@on_a_loop
async def test_a_peer_that_closes_every_connection_is_not_asked_without_pause() -> None:
    accepted = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.append(asyncio.get_running_loop().time())
        writer.close()

    async with peer(serve) as address, channel_to(address) as channel:
        for _ in range(4):
            with pytest.raises(Unreachable):
                await channel.ask(VERSIONS_ASKED, API_VERSIONS, timeout_ms=TIMEOUT_MS)
    assert accepted[-1] - accepted[0] >= 0.045 + 0.095 + 0.195


@on_a_loop
async def test_purposes_do_not_wait_for_each_other(broker: EmbeddedBroker) -> None:
    broker.create_topic("idle")
    channels = BrokerChannels(lambda broker_id: address_of(broker), client_id="broker-1")
    try:
        assert channels.to(BROKER, "fetch") is channels.to(BROKER, "fetch")
        fetching = asyncio.ensure_future(
            channels.to(BROKER, "fetch").ask(long_poll(TIMEOUT_MS, topic="idle"), FETCH, timeout_ms=TIMEOUT_MS)
        )
        await channels.to(BROKER, "controller").ask(VERSIONS_ASKED, API_VERSIONS, timeout_ms=TIMEOUT_MS)
        assert not fetching.done()
    finally:
        await channels.close()
    with pytest.raises(ChannelError):
        await fetching


@on_a_loop
async def test_the_listener_hears_of_every_broker_that_refuses() -> None:
    told: list[int] = []
    address = Address("127.0.0.1", refused_port())
    channels = BrokerChannels(lambda broker_id: address, client_id="broker-1")
    channels.on_unreachable = told.append
    for broker_id in (2, 3):
        with pytest.raises(Unreachable):
            await channels.to(broker_id, "fetch").ask(VERSIONS_ASKED, API_VERSIONS, timeout_ms=TIMEOUT_MS)
    await channels.forget(2)
    await channels.close()
    assert told == [2, 3]


@on_a_loop
async def test_a_silent_broker_is_waited_for_as_long_as_it_is_the_one_to_ask(broker: EmbeddedBroker) -> None:
    async with channel_to(address_of(broker)) as channel:
        answer = await ask_while(lambda: True, channel, VERSIONS_ASKED, API_VERSIONS, timeout_ms=TIMEOUT_MS)
        assert answer.error_code == ErrorCode.NONE

    async def silence(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    looks = iter([True, False])
    async with peer(silence) as address, channel_to(address) as channel:
        with pytest.raises(ChannelError, match="another broker is to be asked"):
            await ask_while(lambda: next(looks), channel, VERSIONS_ASKED, API_VERSIONS, timeout_ms=60_000)


@on_a_loop
async def test_a_broker_that_is_given_up_is_waited_for_no_longer(broker: EmbeddedBroker) -> None:
    broker.create_topic("given-up")
    told: list[int] = []
    channels = BrokerChannels(lambda broker_id: address_of(broker), client_id="broker-1")
    channels.on_unreachable = told.append
    asked, other = channels.to(BROKER, "fetch"), channels.to(BROKER + 1, "fetch")
    for each in (asked, other):
        await each.ask(VERSIONS_ASKED, API_VERSIONS, timeout_ms=TIMEOUT_MS)
    poll = long_poll(TIMEOUT_MS, topic="given-up")
    waiting = [asyncio.ensure_future(each.ask(poll, FETCH, timeout_ms=TIMEOUT_MS)) for each in (asked, other)]
    await channels.to(BROKER, "markers").ask(VERSIONS_ASKED, API_VERSIONS, timeout_ms=TIMEOUT_MS)
    channels.give_up(BROKER, "it was fenced")
    with pytest.raises(ChannelError, match="it was fenced"):
        await waiting[0]
    assert not waiting[1].done()
    await asked.ask(VERSIONS_ASKED, API_VERSIONS, timeout_ms=TIMEOUT_MS)
    await channels.close()
    with pytest.raises(ChannelError):
        await waiting[1]
    assert told == []
