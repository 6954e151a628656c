"""Crowds, silence, slowness: clients that cost a broker memory or turns without sending anything wrong."""

from __future__ import annotations

import socket
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import moldau
from moldau.core import limits
from moldau.wire.messages import ApiVersionsRequest, MetadataRequest
from tests.differential.batches import batch
from tests.hostile.attacker import Attacker, frame, header
from tests.hostile.siege import KEPT, Victim, fetch_request, produce_request, unharmed

CROWD = 1_000
LARGE = "large"


def test_a_crowd_of_idle_connections(victim: Victim) -> None:
    with unharmed(victim):
        crowd = [Attacker(victim.address) for _ in range(CROWD)]
        assert crowd[-1].ask(ApiVersionsRequest(), 0).api_keys
        for attacker in crowd:
            attacker.__exit__()


def test_a_flood_of_connections_that_come_and_go(victim: Victim) -> None:
    with unharmed(victim):
        for turn in range(3_000):
            attacker = Attacker(victim.address)
            if turn % 3 == 0:
                attacker.send(b"\x00\x00")
            if turn % 3 == 1:
                # Linger of zero seconds: the peer sees a reset and not an orderly end.
                attacker.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            attacker.__exit__()


def test_requests_that_never_end(victim: Victim) -> None:
    """Half a frame, and then nothing more."""
    half = frame(fetch_request(KEPT), 12)[:20]
    with unharmed(victim):
        crowd = [Attacker(victim.address) for _ in range(CROWD // 2)]
        for attacker in crowd:
            attacker.send(half)
        with Attacker(victim.address) as honest:
            assert honest.ask(MetadataRequest(topics=[]), 12).brokers
        for attacker in crowd:
            attacker.__exit__()


def test_one_byte_at_a_time(victim: Victim) -> None:
    """A request in single bytes, from fifty clients in turn, is answered all the same."""
    whole = frame(MetadataRequest(topics=[]), 12)
    with unharmed(victim):
        crowd = [Attacker(victim.address) for _ in range(50)]
        for attacker in crowd:
            attacker.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(len(whole)):
            for attacker in crowd:
                attacker.send(whole[at : at + 1])
            time.sleep(0.01)
        for attacker in crowd:
            assert isinstance(attacker.answer(), bytes)
            attacker.__exit__()


def test_answers_that_nobody_reads(victim: Victim) -> None:
    """Thirty clients ask for a megabyte a hundred times each, and never read."""
    victim.create(LARGE)
    for _ in range(4):
        assert victim.produce(LARGE, batch([bytes(250_000)], timestamp=int(time.time() * 1000))) == 0
    asked = frame(fetch_request(LARGE), 12) * 100
    with unharmed(victim):
        crowd = [Attacker(victim.address) for _ in range(30)]
        for attacker in crowd:
            attacker.socket.setblocking(False)
            attacker.send(asked)
        with Attacker(victim.address) as honest:
            assert honest.ask(MetadataRequest(topics=[]), 12).brokers
        for attacker in crowd:
            attacker.__exit__()


def test_questions_without_end(victim: Victim) -> None:
    """Fifty thousand questions in one stream, answers unread: the broker stops reading, it does not hoard."""
    asked = frame(MetadataRequest(topics=None), 12) * 50_000
    with unharmed(victim), Attacker(victim.address, wait_s=2) as attacker:
        attacker.send(asked)
        with Attacker(victim.address) as honest:
            assert honest.ask(MetadataRequest(topics=[]), 12).brokers


def test_parked_fetches_are_forgotten_with_their_connection(victim: Victim) -> None:
    waiting = fetch_request(KEPT, wait_ms=600_000)
    waiting.topics[0].partitions[0].fetch_offset = 2
    with unharmed(victim):
        for _ in range(10):
            crowd = [Attacker(victim.address) for _ in range(100)]
            for attacker in crowd:
                attacker.tell(waiting, 12)
            for attacker in crowd:
                attacker.__exit__()
        with Attacker(victim.address) as honest:
            assert honest.ask(MetadataRequest(topics=[]), 12).brokers


def test_large_frames_that_stop_halfway(victim: Victim) -> None:
    """What has arrived has to be kept; what is announced has not."""
    start = struct.pack(">i", limits.FRAME_BYTES_MAX) + header(0, 9, flexible=True)
    with unharmed(victim):
        crowd = [Attacker(victim.address) for _ in range(20)]
        for attacker in crowd:
            attacker.send(start + bytes(512 * limits.KIB))
        with Attacker(victim.address) as honest:
            assert honest.ask(MetadataRequest(topics=[]), 12).brokers
        for attacker in crowd:
            attacker.__exit__()


def test_large_frames_of_many_share_one_budget(victim: Victim) -> None:
    """Six clients send sixty megabytes of a hundred each and stop: one may go on, the others wait for it."""
    start = struct.pack(">i", limits.FRAME_BYTES_MAX) + header(0, 9, flexible=True)
    before_mb = victim.memory_mb()
    victim.forget_peak()
    crowd = [Attacker(victim.address, wait_s=1.0) for _ in range(6)]
    with ThreadPoolExecutor(len(crowd)) as pool:
        list(pool.map(lambda attacker: attacker.send(start + bytes(60 * limits.MIB)), crowd))
    with Attacker(victim.address) as honest:
        assert honest.ask(MetadataRequest(topics=[]), 12).brokers
    for attacker in crowd:
        attacker.__exit__()
    assert victim.memory_mb("VmHWM") - before_mb < 64 + 60 + 20


def test_large_requests_at_once_are_all_answered(tmp_path: Path) -> None:
    """Where the budget has room for one of them, they take turns."""
    records = batch([bytes(6 * limits.MIB)], timestamp=int(time.time() * 1000))
    overrides = {"queued.max.request.bytes": limits.MIB, "message.max.bytes": 8 * limits.MIB}
    with moldau.run(data_dir=tmp_path, overrides=overrides) as broker:
        victim = Victim(broker)
        victim.create(LARGE)
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: victim.produce(LARGE, records), range(8)))
    assert answers == [0] * 8


def test_no_acknowledgement_wanted(victim: Victim) -> None:
    """Errors under `acks=0` close the connection and leave one line."""
    with unharmed(victim, logged="closing connection"), Attacker(victim.address) as attacker:
        attacker.tell(produce_request("no-such-topic", batch([b"x"], timestamp=0), acks=0), 9)
        assert attacker.answer() == "connection closed"
