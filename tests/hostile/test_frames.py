"""Frames and headers that lie, before anybody has said who they are."""

from __future__ import annotations

import random
import struct

import pytest

from moldau.core import limits
from moldau.wire.codec import encode
from moldau.wire.messages import MetadataRequest
from moldau.wire.messages.registry import REQUESTS
from moldau.wire.schema import Message
from tests.hostile.attacker import CLOSED, Attacker, frame, framed, header
from tests.hostile.siege import Victim, unharmed

PRODUCE, METADATA = 0, 3
EVERY_VERSION = [
    pytest.param(request, version, id=f"{request.__name__}-v{version}")
    for request in REQUESTS
    for version in range(request.VERSIONS[0], request.VERSIONS[1] + 1)
]


@pytest.mark.parametrize("size", [-(2**31), -1, 0, 1, 7, limits.FRAME_BYTES_MAX + 1, 2**31 - 1])
def test_a_frame_of_impossible_size_closes_the_connection(victim: Victim, size: int) -> None:
    with unharmed(victim, logged="closing connection"), Attacker(victim.address) as attacker:
        attacker.send(struct.pack(">i", size) + bytes(100))
        assert attacker.answer() == CLOSED


@pytest.mark.parametrize(
    ("greeting", "speaks"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "it speaks HTTP"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "it speaks TLS.*security.protocol=PLAINTEXT"),
    ],
    ids=["http", "tls"],
)
def test_another_protocol_closes_the_connection_and_is_named_once(victim: Victim, greeting: bytes, speaks: str) -> None:
    with unharmed(victim, logged=f"closing connection .* {speaks}"):
        for _ in range(20):
            with Attacker(victim.address) as attacker:
                attacker.send(greeting)
                assert attacker.answer() == CLOSED


def test_announced_frames_cost_nothing_until_they_arrive(victim: Victim) -> None:
    """Two hundred clients announce the largest frame that is allowed, and send its first bytes only."""
    start = struct.pack(">i", limits.FRAME_BYTES_MAX) + header(PRODUCE, 9, flexible=True)
    with unharmed(victim):
        crowd = [Attacker(victim.address) for _ in range(200)]
        for attacker in crowd:
            attacker.send(start)
        with Attacker(victim.address) as honest:
            assert honest.ask(MetadataRequest(topics=[]), 12).brokers
        for attacker in crowd:
            attacker.__exit__()


@pytest.mark.parametrize("key", [PRODUCE, METADATA], ids=["produce", "metadata"])
def test_twenty_million_tagged_fields_in_a_header(victim: Victim, key: int) -> None:
    start = struct.pack(">hhih", key, 9, 1, -1)
    count = b"\x80\xda\xc4\x09"  # 20 million, as a varint
    tags = b"\x01\x00" * 20_000_000 if key == PRODUCE else b"\x01\x00" * 7_000_000
    with unharmed(victim, logged="closing connection"), Attacker(victim.address) as attacker:
        attacker.send(framed(start + count + tags))
        assert attacker.answer() == CLOSED


@pytest.mark.parametrize("client_id_size", [-2, 32767, 100])
def test_a_client_id_that_is_not_there(victim: Victim, client_id_size: int) -> None:
    with unharmed(victim, logged="closing connection"), Attacker(victim.address) as attacker:
        attacker.send(framed(struct.pack(">hhih", METADATA, 1, 1, client_id_size) + b"short"))
        assert attacker.answer() == CLOSED


def test_a_client_id_that_is_no_text(victim: Victim) -> None:
    with unharmed(victim, logged="closing connection"), Attacker(victim.address) as attacker:
        attacker.send(framed(struct.pack(">hhih", METADATA, 1, 1, 2) + b"\xff\xfe" + struct.pack(">i", 0)))
        assert attacker.answer() == CLOSED


@pytest.mark.parametrize(("key", "version"), [(-1, 0), (999, 0), (METADATA, 99), (METADATA, -1), (PRODUCE, 2)])
def test_an_unknown_request_closes_the_connection(victim: Victim, key: int, version: int) -> None:
    with unharmed(victim, logged="closing connection"), Attacker(victim.address) as attacker:
        attacker.send(framed(header(key, version, flexible=False) + bytes(30)))
        assert attacker.answer() == CLOSED


@pytest.mark.parametrize("count", [2**31 - 1, 1_000_000, 100, -2])
def test_an_array_longer_than_its_frame(victim: Victim, count: int) -> None:
    with unharmed(victim, logged="closing connection"), Attacker(victim.address) as attacker:
        attacker.send(framed(header(METADATA, 1, flexible=False) + struct.pack(">i", count)))
        assert attacker.answer() == CLOSED


def test_sixteen_megabytes_of_empty_elements(victim: Victim) -> None:
    """The largest request that is not Produce, filled with the cheapest elements there are: empty names."""
    elements = (limits.CONTROL_FRAME_BYTES_MAX - 100) // 2
    with unharmed(victim), Attacker(victim.address) as attacker:
        attacker.send(framed(header(METADATA, 1, flexible=False) + struct.pack(">i", elements) + bytes(2 * elements)))
        assert attacker.answer() == CLOSED


@pytest.mark.parametrize(("request_class", "version"), EVERY_VERSION)
def test_every_request_with_nothing_in_it(victim: Victim, request_class: type[Message], version: int) -> None:
    """Defaults everywhere, then the same cut short, then overrun with ones: an answer or a closed connection."""
    start = header(request_class.API_KEY, version, flexible=version >= request_class.FLEXIBLE_FROM)
    empty = encode(request_class(), version)
    with unharmed(victim):
        for body in (empty, empty[: len(empty) // 2], b"", b"\xff" * 40, b"\x7f" * 40, bytes(40)):
            with Attacker(victim.address, wait_s=5) as attacker:
                attacker.send(framed(start + body))
                attacker.answer_or_silence(0.1)


def test_random_damage(victim: Victim) -> None:
    """Requests of every kind with a few bytes changed, a thousand of them, from one seed."""
    chance = random.Random(31)
    with unharmed(victim):
        for _ in range(1_000):
            request_class = chance.choice(REQUESTS)
            version = chance.randint(*request_class.VERSIONS)
            damaged = bytearray(frame(request_class(), version)[4:])
            for _ in range(chance.randint(1, 4)):
                damaged[chance.randrange(8, len(damaged))] = chance.choice(
                    (0, 1, 2, 0x7F, 0x80, 0xFF, chance.randrange(256))
                )
            with Attacker(victim.address) as attacker:
                attacker.send(framed(bytes(damaged)))
