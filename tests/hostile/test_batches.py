"""Record batches that lie, explode or pretend to be the broker's own."""

from __future__ import annotations

import gzip
import time
import zlib

import lz4.frame
import pytest
import zstandard

from moldau.core.errors import ErrorCode
from tests.differential import batches
from tests.differential.batches import batch, old_message, record, varint
from tests.hostile.attacker import CLOSED, Attacker
from tests.hostile.siege import KEPT, Victim, produce_request, unharmed

NOW_MS = int(time.time() * 1000)
BOMB_BYTES = 1 << 30
COMPACTED = "compacted"
REWRITTEN = "rewritten"


@pytest.fixture(scope="module", autouse=True)
def _topics(victim: Victim) -> None:
    victim.create(COMPACTED, cleanup_policy="compact")
    victim.create(REWRITTEN, compression_type="uncompressed")


def zeros() -> bytes:
    return bytes(1 << 20)


def gzip_bomb() -> bytes:
    packer = zlib.compressobj(9, wbits=31)
    return b"".join(packer.compress(zeros()) for _ in range(BOMB_BYTES >> 20)) + packer.flush()


def zstd_bomb() -> bytes:
    packer = zstandard.ZstdCompressor(level=3).compressobj()
    return b"".join(packer.compress(zeros()) for _ in range(BOMB_BYTES >> 20)) + packer.flush()


def lz4_bomb() -> bytes:
    """A smaller one: lz4 packs 250 to 1, and the request must stay within the largest message."""
    with lz4.frame.LZ4FrameCompressor(block_size=lz4.frame.BLOCKSIZE_MAX4MB, block_linked=False) as packer:
        packed = packer.begin() + b"".join(packer.compress(zeros()) for _ in range(200))
        return bytes(packed + packer.flush())


def snappy_bomb() -> bytes:
    """One block that announces 2 GiB and holds a few bytes."""
    return batches.XERIAL + b"\x00\x00\x00\x10" + b"\xff\xff\xff\xff\x07" + bytes(11)


LIES = {
    "wrong checksum": batch([b"x"], timestamp=NOW_MS, flip_crc=1),
    "size too large": batch([b"x"], timestamp=NOW_MS, size_delta=1_000),
    "size too small": batch([b"x"], timestamp=NOW_MS, size_delta=-5),
    "size negative": batch([b"x"], timestamp=NOW_MS, size_delta=-(2**30)),
    "count too large": batch([b"x"], timestamp=NOW_MS, count=2**31 - 1),
    "count negative": batch([b"x"], timestamp=NOW_MS, count=-1),
    "last offset beyond": batch([b"x"], timestamp=NOW_MS, last_offset_delta=2**31 - 1),
    "last offset negative": batch([b"x"], timestamp=NOW_MS, last_offset_delta=-1),
    "control batch": batch([b"x"], timestamp=NOW_MS, attributes=batches.CONTROL),
    "transactional bit": batch([b"x"], timestamp=NOW_MS, attributes=batches.TRANSACTIONAL, producer=(1, 0, 0)),
    "magic 0": old_message(b"x", magic=0, timestamp=NOW_MS),
    "magic 1": old_message(b"x", magic=1, timestamp=NOW_MS),
    "magic 9": batch([b"x"], timestamp=NOW_MS, magic=9),
    "unknown codec": batch([b"x"], timestamp=NOW_MS, codec=7),
    "nothing": b"",
    "noise": bytes(range(256)),
}

KEYED_LIES = {
    "record of negative size": varint(-5),
    "key of negative size": varint(8) + b"\0" + varint(0) + varint(0) + varint(-9) + varint(0) * 4,
    "value beyond the batch": varint(8) + b"\0" + varint(0) + varint(0) + varint(0) + varint(1 << 30),
    "headers beyond the batch": record(b"x", key=b"k", header_count=1 << 30),
    "headers of negative count": record(b"x", key=b"k", header_count=-2),
    "varint without an end": b"\xff" * 30,
    "a million headers for no record": record(b"x", key=b"k", header_count=1_000_000),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lying_batch_is_refused(victim: Victim, lie: str) -> None:
    with unharmed(victim), Attacker(victim.address) as attacker:
        answer = attacker.ask(produce_request(KEPT, LIES[lie]), 9)
        assert answer == CLOSED or answer.responses[0].partition_responses[0].error_code != ErrorCode.NONE


@pytest.mark.parametrize("codec", [batches.NONE, batches.GZIP, batches.ZSTD])
@pytest.mark.parametrize("lie", KEYED_LIES)
def test_lying_records_are_refused_where_they_are_read(victim: Victim, lie: str, codec: int) -> None:
    """A compacted topic needs keys, so the broker looks at every record."""
    lying = batch([b"x"], timestamp=NOW_MS, raw=KEYED_LIES[lie], codec=codec)
    with unharmed(victim):
        assert victim.produce(COMPACTED, lying) != ErrorCode.NONE


def test_a_million_headers(victim: Victim) -> None:
    """Truly there, six bytes each compressed to nothing: more than one record of any use would have."""
    many = record(b"x", key=b"k", headers=[(b"", None)] * 1_000_000)
    before = victim.memory_mb()
    code = victim.produce(COMPACTED, batch([b"x"], timestamp=NOW_MS, raw=many, codec=batches.ZSTD))
    assert code in (ErrorCode.NONE, ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE)
    assert victim.memory_mb("VmHWM") - before < 64


@pytest.mark.parametrize("topic", [COMPACTED, REWRITTEN])
@pytest.mark.parametrize(
    ("codec", "bomb"),
    [(batches.GZIP, gzip_bomb), (batches.ZSTD, zstd_bomb), (batches.LZ4, lz4_bomb), (batches.SNAPPY, snappy_bomb)],
    ids=["gzip", "zstd", "lz4", "snappy"],
)
def test_a_decompression_bomb_is_capped(victim: Victim, topic: str, codec: int, bomb: object) -> None:
    assert callable(bomb)
    packed: bytes = bomb()
    assert len(packed) < 1_048_000, "or it would be refused for its size"
    bombing = batch([b"x"], timestamp=NOW_MS, raw=packed, attributes=codec)
    with unharmed(victim):
        assert victim.produce(topic, bombing) != ErrorCode.NONE


def test_several_bombs_at_once(victim: Victim) -> None:
    packed = gzip.compress(bytes(200 << 20))
    bombing = produce_request(COMPACTED, batch([b"x"], timestamp=NOW_MS, raw=packed, attributes=batches.GZIP))
    with unharmed(victim):
        crowd = [Attacker(victim.address) for _ in range(8)]
        for attacker in crowd:
            attacker.tell(bombing, 9)
        for attacker in crowd:
            assert isinstance(attacker.answer(), bytes)
            attacker.__exit__()


def test_a_bad_partition_does_not_hurt_its_neighbour(victim: Victim) -> None:
    victim.create("pair")
    request = produce_request("pair", batch([b"good"], timestamp=NOW_MS))
    bad = produce_request(COMPACTED, LIES["wrong checksum"])
    request.topic_data.extend(bad.topic_data)
    with Attacker(victim.address) as client:
        answer = client.ask(request, 9)
    codes = {one.name: one.partition_responses[0].error_code for one in answer.responses}
    assert codes["pair"] == ErrorCode.NONE
    assert codes[COMPACTED] != ErrorCode.NONE
