"""Batches that must be opened and hold much: stored or refused as ever, and nobody waits for it."""

from __future__ import annotations

import itertools
import threading
import time

import pytest

from moldau.core.errors import ErrorCode
from moldau.wire.messages import ApiVersionsRequest
from tests.differential import batches
from tests.differential.batches import batch, record
from tests.hostile.attacker import Attacker
from tests.hostile.siege import Victim, fetch_request, produce_request
from tests.hostile.test_batches import gzip_bomb

NOW_MS = int(time.time() * 1000)
COMPACTED, REWRITTEN, PLAIN = "opened-compacted", "opened-rewritten", "opened-plain"


@pytest.fixture(scope="module", autouse=True)
def _topics(victim: Victim) -> None:
    victim.create(COMPACTED, cleanup_policy="compact")
    victim.create(REWRITTEN, compression_type="lz4")
    victim.create(PLAIN)


def many(count: int, *, key: bytes | None = b"k") -> bytes:
    return b"".join(record(b"v" * 20, key=key, offset_delta=index) for index in range(count))


def batch_of(count: int, codec: int, *, key: bytes | None = b"k") -> bytes:
    values = [b"v"] * count
    return batch(values, timestamp=NOW_MS, raw=many(count, key=key), codec=codec)


@pytest.mark.parametrize("codec", range(5))
@pytest.mark.parametrize("topic", [COMPACTED, REWRITTEN])
def test_large_batches_are_stored_in_order(victim: Victim, topic: str, codec: int) -> None:
    with Attacker(victim.address) as client:
        offsets = []
        for _ in range(3):
            for count in (3, 20_000):
                answer = client.ask(produce_request(topic, batch_of(count, codec)), 9)
                stored = answer.responses[0].partition_responses[0]
                assert stored.error_code == ErrorCode.NONE, stored
                offsets.append(stored.base_offset)
        steps = [later - earlier for earlier, later in itertools.pairwise(offsets)]
        assert steps == [3, 20_000] * 2 + [3]
        wanted = fetch_request(topic, max_bytes=1 << 22)
        wanted.topics[0].partitions[0].fetch_offset = offsets[1]
        read = client.ask(wanted, 12).responses[0].partitions[0]
        assert batches.describe(bytes(read.records))[0]["base_offset"] == offsets[1]


@pytest.mark.parametrize("codec", [batches.NONE, batches.GZIP, batches.ZSTD])
def test_a_record_at_fault_is_named(victim: Victim, codec: int) -> None:
    with Attacker(victim.address) as client:
        answer = client.ask(produce_request(COMPACTED, batch_of(20_000, codec, key=None)), 9)
    refused = answer.responses[0].partition_responses[0]
    assert refused.error_code == ErrorCode.INVALID_RECORD
    assert refused.record_errors[0].batch_index == 0


def test_without_acknowledgement_a_fault_closes_the_connection(victim: Victim) -> None:
    with Attacker(victim.address) as client:
        client.tell(produce_request(COMPACTED, batch_of(20_000, batches.GZIP), acks=0), 9)
        client.tell(produce_request(COMPACTED, batch_of(20_000, batches.GZIP, key=None), acks=0), 9)
        assert client.answer() == "connection closed"


@pytest.mark.parametrize("topic", [COMPACTED, PLAIN])
def test_a_bomb_holds_nobody_up(victim: Victim, topic: str) -> None:
    """On a plain topic, too: a header whose times contradict each other makes the broker look inside."""
    raw = gzip_bomb()
    bomb = batch([b"x"], timestamp=NOW_MS, raw=raw, attributes=batches.GZIP, max_timestamp=NOW_MS - 1)
    finished = threading.Event()

    def throw() -> None:
        with Attacker(victim.address) as client:
            for _ in range(20):
                answer = client.ask(produce_request(topic, bomb), 9)
                assert answer.responses[0].partition_responses[0].error_code == ErrorCode.INVALID_RECORD
        finished.set()

    throwing = threading.Thread(target=throw)
    throwing.start()
    answers = 0
    with Attacker(victim.address) as other:
        while not finished.is_set() and throwing.is_alive():
            assert other.ask(ApiVersionsRequest(), 0).api_keys
            answers += 1
    throwing.join()
    assert finished.is_set()
    assert answers > 100, "twenty bombs on the loop leave time for about as many answers"
