"""Hellos of OpenSSL's own client: those with elliptic curves pass, however they are cut, and finite fields do not."""

from __future__ import annotations

import socket
import subprocess
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.security.tls.hellos import HELLO_BYTES_MAX, HelloGate, RefusedHello
from moldau.security.tls.session import HandshakeFailed
from tests.security.tls.test_session import establish, opened, server, sockets
from tests.security.tls.world import World

USUAL = ("X25519", "P-256", "P-521", "X448:P-384", "X25519:ffdhe8192", "P-256:X25519:ffdhe2048")
FINITE = ("ffdhe2048", "ffdhe8192", "ffdhe3072:X25519")
HEADER_BYTES = 5
HANDSHAKE_FAILURE = bytes.fromhex("15030300020228")


@cache
def hello(groups: str) -> bytes:
    """One record of the real thing, with a share of the first group."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        command = ["openssl", "s_client", "-tls1_3", "-connect", address, "-groups", groups]
        none = subprocess.DEVNULL
        with subprocess.Popen(command, stdin=none, stdout=none, stderr=none) as client:
            here, _ = listening.accept()
            with here:
                here.settimeout(30)
                told = here.recv(HEADER_BYTES, socket.MSG_WAITALL)
                told += here.recv(int.from_bytes(told[3:], "big"), socket.MSG_WAITALL)
            client.kill()
    return told


def cut(told: bytes, size: int) -> list[bytes]:
    """The same message in records of so many bytes each."""
    message = told[HEADER_BYTES:]
    parts = [message[at : at + size] for at in range(0, len(message), size)]
    return [told[:3] + len(part).to_bytes(2, "big") + part for part in parts]


def passed(gate: HelloGate, records: list[bytes]) -> bytes:
    return b"".join(bytes(gate.passed(memoryview(each))) for each in records)


@pytest.mark.parametrize("groups", USUAL)
@pytest.mark.parametrize("size", [1, 3, 4, 100, 4_000])
def test_curves_pass_as_they_came(groups: str, size: int) -> None:
    records = cut(hello(groups), size)
    gate = HelloGate()
    assert passed(gate, records[:-1]) == b""
    assert passed(gate, records[-1:]) == b"".join(records)
    assert passed(gate, [b"whatever follows"]) == b"whatever follows"


@pytest.mark.parametrize("groups", FINITE)
@pytest.mark.parametrize("size", [1, 100, 4_000])
def test_finite_fields_are_refused(groups: str, size: int) -> None:
    with pytest.raises(RefusedHello, match="finite field"):
        passed(HelloGate(), cut(hello(groups), size))


def test_a_finite_field_is_not_asked_for_in_the_place_of_a_share() -> None:
    """A group that nobody knows, without a share of it: OpenSSL would ask for one of the other group."""
    told = hello("ffdhe2048")
    share = bytes.fromhex("0033 0106 0104 0100 0100")
    at = told.index(share)
    without = told[:at] + bytes.fromhex("0033 0002 0000") + told[at + 4 + 0x106 :]
    message = bytearray(without[HEADER_BYTES:])
    message[1:4] = (len(message) - 4).to_bytes(3, "big")
    where = told.index(b"\x00\x0a\x00\x04\x00\x02\x01\x00")
    assert where < at
    extensions = len(message) - (34 + 4 + 1 + message[38])
    suites = 39 + message[38]
    start = suites + 2 + int.from_bytes(message[suites : suites + 2], "big") + 2
    assert extensions > 0
    message[start : start + 2] = (len(message) - start - 2).to_bytes(2, "big")
    record = told[:3] + len(message).to_bytes(2, "big") + bytes(message)
    with pytest.raises(RefusedHello, match="0x0100"):
        passed(HelloGate(), [record])


def test_what_comes_before_a_hello_opens_nothing() -> None:
    warning, change = bytes.fromhex("15030300020100"), bytes.fromhex("140303000101")
    gate = HelloGate()
    assert passed(gate, [warning, change]) == b""
    with pytest.raises(RefusedHello):
        passed(gate, [hello("ffdhe8192")])


def test_a_hello_has_a_limit() -> None:
    record = bytes.fromhex("160301 1000 01 00ffff") + bytes(0x1000 - 4)
    with pytest.raises(RefusedHello, match="more than"):
        passed(HelloGate(), [record] * (HELLO_BYTES_MAX // len(record) + 1))


def test_what_is_no_tls_goes_to_openssl() -> None:
    assert passed(HelloGate(), [b"GET / HTTP/1.1\r\n"]) == b"GET / HTTP/1.1\r\n"


@given(st.binary(max_size=400), st.integers(0, 300))
def test_any_bytes_pass_or_are_refused(noise: bytes, at: int) -> None:
    told = hello("X25519")
    changed = told[:at] + noise + told[at + len(noise) :]
    for records in ([noise or b"\x16"], [changed]):
        gate = HelloGate()
        try:
            assert passed(gate, records) in (b"", b"".join(records))
        except RefusedHello:
            continue


def test_a_client_that_wants_a_finite_field_is_told_by_an_alert(world: World) -> None:
    with sockets() as (here, there):
        session = opened(here, server(world))
        there.sendall(hello("ffdhe8192"))
        with pytest.raises(HandshakeFailed, match="elliptic curve"):
            establish(session)
        assert there.recv(100) == HANDSHAKE_FAILURE
