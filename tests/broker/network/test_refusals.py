"""The log names who was refused, and a flood of refusals does not fill it."""

from __future__ import annotations

import logging

import pytest

from moldau.broker.context import Peer
from moldau.broker.network import refusals as refusing
from moldau.broker.network.greetings import ForeignProtocol, foreign_protocol
from moldau.broker.network.inbox import Inbox
from moldau.broker.network.refusals import HOSTS_MAX, LINES_MAX, WINDOW_S, Refusals
from moldau.core.errors import ProtocolViolation

GREETINGS = {
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03": "speaks TLS.*security.protocol=PLAINTEXT",
    b"\x16\x03\x03\x00\x10": "speaks TLS",
    b"GET / HTTP/1.1\r\n\r\n": "speaks HTTP",
    b"POST /topics HTTP/1.1\r\n": "speaks HTTP",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n": "speaks HTTP",
    b"SSH-2.0-OpenSSH_9.6\r\n": "speaks SSH",
    b"*1\r\n$4\r\nPING\r\n": "Redis",
    b"PING\r\n": "Redis",
    b"PROXY TCP4 10.0.0.1 10.0.0.2 5000 9092\r\n": "PROXY protocol",
    b"\r\n\r\n\x00\r\nQUIT\n": "PROXY protocol",
    b"ruok": "ZooKeeper",
    b"AMQP\x00\x00\x09\x01": "AMQP",
}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1_000.0]
    monkeypatch.setattr(refusing, "monotonic", lambda: now[0])
    return now


@pytest.mark.parametrize("greeting", GREETINGS, ids=lambda greeting: repr(greeting[:5]))
def test_another_protocol_is_told_apart(greeting: bytes) -> None:
    inbox = Inbox(memoryview(bytearray(64)))
    inbox.space()[: len(greeting)] = greeting
    inbox.received(len(greeting))
    with pytest.raises(ForeignProtocol, match=GREETINGS[greeting]):
        inbox.next_frame()


def test_tls_is_told_apart_where_frames_may_have_any_size() -> None:
    inbox = Inbox(memoryview(bytearray(64)), frame_bytes_max=2**31 - 1)
    inbox.space()[:6] = b"\x16\x03\x01\x02\x00\x01"
    inbox.received(6)
    with pytest.raises(ForeignProtocol, match="speaks TLS"):
        inbox.next_frame()


@pytest.mark.parametrize("size", [0, 8, 1 << 20, 100 << 20, 2**31 - 1, -1])
def test_a_frame_of_ours_is_not(size: int) -> None:
    assert foreign_protocol(size.to_bytes(4, "big", signed=True)) is None


def peer(number: int = 1, port: int = 5_000) -> Peer:
    return Peer("PLAINTEXT", f"10.0.{number >> 8}.{number & 255}", port)


def test_the_wrong_door_is_named_once_a_minute_and_host(clock: list[float], caplog: pytest.LogCaptureFixture) -> None:
    refusals = Refusals()
    for _ in range(1_000):
        for host in (1, 2):
            refusals.violated(peer(host), ForeignProtocol("speaks TLS"), "")
        refusals.violated(peer(1), ForeignProtocol("speaks HTTP"), "")
    assert len(caplog.records) == 3
    assert "closing connection from 10.0.0.1:5000: it speaks TLS; more like it from 10.0.0.1" in caplog.text
    caplog.clear()
    clock[0] += WINDOW_S
    refusals.violated(peer(1), ForeignProtocol("speaks TLS"), "")
    assert "speaks TLS (999 like it were not logged)" in caplog.text


def test_a_flood_of_violations_is_cut_and_counted(clock: list[float], caplog: pytest.LogCaptureFixture) -> None:
    refusals = Refusals()
    for number in range(5_000):
        refusals.violated(peer(), ProtocolViolation(f"wrong in way {number}"), "")
    assert len(caplog.records) == LINES_MAX
    assert "are not logged for 60 s" in caplog.records[-1].message
    refusals.violated(peer(2), ProtocolViolation("another host"), "")
    assert "another host" in caplog.text
    refusals.failed(peer(), ValueError("of our own"), "")
    assert caplog.records[-1].levelno == logging.ERROR, "a flood of others' mistakes does not hide ours"


def test_hosts_are_remembered_up_to_a_number(clock: list[float], caplog: pytest.LogCaptureFixture) -> None:
    refusals = Refusals()
    for number in range(HOSTS_MAX * 3):
        refusals.not_admitted(peer(number), "too many")
    assert len(refusals._windows) == HOSTS_MAX
