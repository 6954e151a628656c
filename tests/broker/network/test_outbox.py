"""Replies of buffers and file ranges arrive byte for byte, however slowly the peer reads."""

from __future__ import annotations

import os
import socket
import tracemalloc
from pathlib import Path
from typing import cast

import pytest

from moldau.broker.network.outbox import INLINE_BYTES_MAX, Outbox, Part
from moldau.core.ids import Offset
from moldau.core.limits import MIB
from moldau.log.file_range import FileRange
from tests.log.samples import EVERYTHING, NOW_MS, batch, config, create


def receive(peer: socket.socket, size: int) -> bytes:
    got = b""
    while len(got) < size:
        got += peer.recv(1 << 16)
    return got


@pytest.fixture
def stored(tmp_path: Path) -> tuple[int, bytes]:
    content = os.urandom(4 * 1024 * 1024)
    (tmp_path / "segment").write_bytes(content)
    return os.open(tmp_path / "segment", os.O_RDONLY), content


@pytest.mark.parametrize("range_bytes", [10, INLINE_BYTES_MAX, INLINE_BYTES_MAX + 1, 3_000_000])
def test_buffers_and_files_in_order(stored: tuple[int, bytes], range_bytes: int) -> None:
    fd, content = stored
    ours, peer = socket.socketpair()
    ours.setblocking(False)
    parts: list[Part] = [b"head", FileRange(fd, 5, range_bytes, None), memoryview(b"mid"), bytearray(b"dle")]
    parts += [FileRange(fd, 100, range_bytes, None), b"tail"]
    wanted = b"head" + content[5 : 5 + range_bytes] + b"middle" + content[100 : 100 + range_bytes] + b"tail"
    outbox = Outbox(ours)
    done = outbox.send(parts)
    got = b""
    while len(got) < len(wanted):
        got += peer.recv(1 << 16)
        done = done or outbox.flush()
    assert done
    assert got == wanted
    ours.close()
    peer.close()
    os.close(fd)


def test_very_many_buffers_arrive_in_order() -> None:
    ours, peer = socket.socketpair()
    ours.setblocking(False)
    parts: list[Part] = [bytes([number % 251]) * 20_000 for number in range(1_000)]
    outbox = Outbox(ours)
    assert not outbox.send(parts)
    got = bytearray()
    while not outbox.flush():
        got += peer.recv(1 << 20)
    ours.close()
    while chunk := peer.recv(1 << 20):
        got += chunk
    peer.close()
    assert got == b"".join(parts)  # type: ignore[arg-type]


def test_one_large_buffer(stored: tuple[int, bytes]) -> None:
    fd, content = stored
    os.close(fd)
    ours, peer = socket.socketpair()
    ours.setblocking(False)
    outbox = Outbox(ours)
    assert not outbox.send([content])
    got = b""
    while len(got) < len(content):
        got += peer.recv(1 << 16)
        outbox.flush()
    assert got == content
    ours.close()
    peer.close()


def test_more_buffers_than_one_call_takes() -> None:
    ours, peer = socket.socketpair()
    ours.setblocking(False)
    outbox = Outbox(ours)
    assert outbox.send([b"%04d" % number for number in range(1500)])
    assert receive(peer, 6000) == b"".join(b"%04d" % number for number in range(1500))
    ours.close()
    peer.close()


class Reader:
    """A peer that reads as fast as it is sent to."""

    def __init__(self) -> None:
        self.calls: list[int] = []

    def sendmsg(self, buffers: list[bytes], *_: object) -> int:
        self.calls.append(sum(map(len, buffers)))
        return self.calls[-1]


@pytest.mark.parametrize("count", [40, 4_000], ids=["few long parts", "many short parts"])
def test_a_peer_that_reads_fast_gets_a_large_answer_in_several_turns(count: int) -> None:
    """Others have theirs in between, and none of it is copied."""
    reader = Reader()
    outbox = Outbox(cast(socket.socket, reader))
    turns, is_gone = 1, outbox.send([bytes(20 * MIB // count)] * count)
    while not is_gone:
        turns, is_gone = turns + 1, outbox.flush()
    assert turns > 2
    assert sum(reader.calls) == 20 * MIB // count * count


@pytest.mark.parametrize("missing_bytes", [1, 100])
@pytest.mark.parametrize("range_bytes", [100, INLINE_BYTES_MAX, INLINE_BYTES_MAX + 1])
def test_a_file_that_became_shorter_ends_the_answer(
    stored: tuple[int, bytes], missing_bytes: int, range_bytes: int
) -> None:
    """Its size is announced already: whatever came next would be taken for the rest of it."""
    fd, content = stored
    ours, peer = socket.socketpair()
    ours.setblocking(False)
    beyond = FileRange(fd, len(content) - range_bytes + missing_bytes, range_bytes, None)
    with ours, peer, pytest.raises(OSError, match="shorter"):
        Outbox(ours).send([b"head", beyond, b"tail"])
    os.close(fd)


@pytest.mark.parametrize("held", [0, 1, 2])
def test_a_large_buffer_is_not_copied_whatever_small_ones_are_sent_with_it(held: int) -> None:
    ours, peer = socket.socketpair()
    ours.setblocking(False)
    large = os.urandom(8 * MIB)
    parts: list[Part] = [*[b"held"] * held, b"header", b"", large, b"end"]
    outbox = Outbox(ours)
    tracemalloc.start()
    try:
        assert not outbox.send(parts)
        assert tracemalloc.get_traced_memory()[1] < MIB
    finally:
        tracemalloc.stop()
    wanted = b"".join(cast("list[bytes]", parts))
    got = bytearray()
    while len(got) < len(wanted):
        got += peer.recv(1 << 20)
        outbox.flush()
    assert bytes(got) == wanted
    ours.close()
    peer.close()


@pytest.mark.parametrize("size_bytes", [INLINE_BYTES_MAX, 2 * MIB])
def test_nothing_is_sent_of_records_that_were_truncated(tmp_path: Path, size_bytes: int) -> None:
    """Other records stand where they stood, and the file is as long as before: only the log knows."""
    log = create(tmp_path, config(max_message_bytes=16 * MIB))
    for value in (b"kept", bytes(size_bytes)):
        log.append_as_leader(batch([value]), leader_epoch=0, now_ms=NOW_MS)
    kept = log.read(Offset(0), bytes_max=1, end=Offset(1), one_batch=True)
    gone = log.read(Offset(1), bytes_max=EVERYTHING, end=Offset(2), one_batch=True)
    log.truncate_to(Offset(1), now_ms=NOW_MS)
    log.append_as_leader(batch([os.urandom(size_bytes)]), leader_epoch=1, now_ms=NOW_MS)
    new = log.read(Offset(1), bytes_max=EVERYTHING, end=Offset(2), one_batch=True)
    assert (gone.position, gone.size) == (new.position, new.size)
    ours, peer = socket.socketpair()
    ours.setblocking(False)
    with ours, peer:
        with pytest.raises(OSError, match="truncated"):
            Outbox(ours).send([b"head", gone, b"tail"])
        outbox = Outbox(ours)
        done = outbox.send([kept, new])
        while not done:
            peer.recv(MIB)
            done = outbox.flush()


def test_every_truncation_counts(tmp_path: Path) -> None:
    log = create(tmp_path)
    for value in (b"a", b"b", b"c"):
        log.append_as_leader(batch([value]), leader_epoch=0, now_ms=NOW_MS)
    first, second = (log.read(Offset(at), bytes_max=1, end=Offset(3), one_batch=True) for at in (0, 1))
    log.truncate_to(Offset(2), now_ms=NOW_MS)
    first.check()
    second.check()
    log.truncate_to(Offset(1), now_ms=NOW_MS)
    first.check()
    with pytest.raises(OSError, match="truncated"):
        second.read()


def test_a_truncation_in_the_middle_ends_the_answer(tmp_path: Path) -> None:
    log = create(tmp_path, config(max_message_bytes=16 * MIB))
    log.append_as_leader(batch([bytes(8 * MIB)]), leader_epoch=0, now_ms=NOW_MS)
    ours, peer = socket.socketpair()
    ours.setblocking(False)
    with ours, peer:
        outbox = Outbox(ours)
        assert not outbox.send([log.read(Offset(0), bytes_max=EVERYTHING, end=Offset(1), one_batch=True)])
        log.truncate_to(Offset(0), now_ms=NOW_MS)
        log.append_as_leader(batch([os.urandom(8 * MIB)]), leader_epoch=1, now_ms=NOW_MS)
        peer.recv(MIB)
        with pytest.raises(OSError, match="truncated"):
            outbox.flush()
