"""A thousand failed logins a second beside a client that does nothing wrong."""

from __future__ import annotations

import multiprocessing
import selectors
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from moldau.wire.messages import MetadataRequest, SaslAuthenticateRequest, SaslHandshakeRequest
from tests.hostile.attacker import Attacker, frame
from tests.node.securing.secured import PASSWORDS, running_secured

FAILURES_PER_S = 1_000
AT_ONCE_MAX = 100
ATTACK_S = 20.0
MEMORY_MB_MAX = 64
SLOWER_MAX = 2.0
SLOWER_MS_MIN = 5.0  # attacker and client share two cores with the broker: less is no finding
BURST = frame(SaslHandshakeRequest("PLAIN"), 1) + frame(SaslAuthenticateRequest(b"\0alice\0wrong"), 2)


class Flood:
    """In a process of its own. Each connection is told both requests at once, and closed when the broker closes it."""

    def __init__(self, address: tuple[str, int]) -> None:
        spawning = multiprocessing.get_context("spawn")
        self._is_over, self._failed = spawning.Event(), spawning.Value("i", 0)
        self._process = spawning.Process(target=flood, args=(address, self._is_over, self._failed), daemon=True)

    def __enter__(self) -> Flood:
        self._process.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._process.join()

    @property
    def failed(self) -> int:
        return int(self._failed.value)


def flood(address: tuple[str, int], is_over: Any, failed: Any) -> None:
    with selectors.DefaultSelector() as waiting:
        begun_s, begun = time.monotonic(), 0
        while not is_over.is_set():
            due = int((time.monotonic() - begun_s) * FAILURES_PER_S) - begun
            for _ in range(min(due, AT_ONCE_MAX)):
                begun += 1
                one = socket.create_connection(address, 20)
                one.sendall(BURST)
                one.setblocking(False)
                waiting.register(one, selectors.EVENT_READ)
            failed.value += collect(waiting)


def collect(waiting: selectors.BaseSelector) -> int:
    closed = 0
    for key, _ in waiting.select(0.001):
        one = key.fileobj
        assert isinstance(one, socket.socket)
        try:
            is_closed = one.recv(4096) == b""
        except ConnectionResetError:
            is_closed = True
        if is_closed:
            closed += 1
            waiting.unregister(one)
            one.close()
    return closed


def p99_ms(client: Attacker, for_s: float) -> float:
    took_s = []
    end_s = time.monotonic() + for_s
    while (begun_s := time.monotonic()) < end_s:
        assert client.ask(MetadataRequest(), 9).error_code == 0
        took_s.append(time.monotonic() - begun_s)
        time.sleep(0.002)
    return sorted(took_s)[int(len(took_s) * 0.99)] * 1_000


def resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1_024


@pytest.mark.long
def test_failed_logins_cost_others_little_time_and_the_broker_little_memory(tmp_path: Path) -> None:
    with running_secured(tmp_path) as secured:
        found = secured.broker.addresses["SASL_PLAINTEXT"]
        address = (found.host, found.port)
        with Attacker(address) as client:
            client.ask(SaslHandshakeRequest("PLAIN"), 1)
            token = f"\0alice\0{PASSWORDS['alice']}".encode()
            assert client.ask(SaslAuthenticateRequest(token), 2).error_code == 0
            calm_ms, before_mb = p99_ms(client, 5.0), resident_mb(secured.broker.pid)
            with Flood(address) as attack:
                attacked_ms = p99_ms(client, ATTACK_S)
            grown_mb = resident_mb(secured.broker.pid) - before_mb
        print(f"p99 {calm_ms:.1f} ms, then {attacked_ms:.1f} ms; {attack.failed} failed; {grown_mb:.1f} MB more")
        assert attack.failed > FAILURES_PER_S * ATTACK_S / 4
        assert grown_mb <= MEMORY_MB_MAX
        assert attacked_ms <= max(SLOWER_MAX * calm_ms, calm_ms + SLOWER_MS_MIN)
