"""Connections that are reset right behind some bytes leave nothing behind, whatever their listener."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from tests.node.securing.secured import Secured, running_secured

RESET = struct.pack("ii", 1, 0)  # lingers for no time: the peer is told by RST
HALF = b"\0\0\x10\0" + b"x" * 20
CROWD = 20
SWEPT_S_MAX = 20.0


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with running_secured(tmp_path_factory.mktemp("resets")) as running:
        yield running


def descriptors(secured: Secured) -> int:
    return len(os.listdir(f"/proc/{secured.broker.pid}/fd"))


def until(is_so: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + SWEPT_S_MAX
    while not is_so():
        assert time.monotonic() < deadline_s, "descriptors stay"
        time.sleep(0.05)


def connected(secured: Secured, protocol: str) -> socket.socket:
    address = secured.broker.addresses[protocol]
    plain = socket.create_connection((address.host, address.port), 10)
    if "SSL" not in protocol:
        return plain
    context = ssl.create_default_context(cafile=str(secured.keys.trusted))
    return context.wrap_socket(plain, server_hostname="localhost")


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"])
def test_bytes_and_a_reset_that_come_together(secured: Secured, protocol: str) -> None:
    """The broker stands still while they come, so that one look of its loop finds both."""
    before = descriptors(secured)
    crowd = [connected(secured, protocol) for _ in range(CROWD)]
    until(lambda: descriptors(secured) >= before + CROWD)
    os.kill(secured.broker.pid, signal.SIGSTOP)
    try:
        for one in crowd:
            one.sendall(HALF)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            one.close()
    finally:
        os.kill(secured.broker.pid, signal.SIGCONT)
    until(lambda: descriptors(secured) <= before)


def test_a_flood_of_resets_before_a_login_takes_no_connection_from_others(tmp_path: Path) -> None:
    with running_secured(tmp_path, **{"max.connections": "100"}) as secured:
        address = secured.broker.addresses["SASL_PLAINTEXT"]
        for _ in range(300):
            with socket.create_connection((address.host, address.port), 10) as one:
                one.sendall(HALF)
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        admin = AdminClient(secured.logged_in("SASL_PLAINTEXT", "PLAIN", "alice"))
        assert admin.list_topics(timeout=20).brokers
