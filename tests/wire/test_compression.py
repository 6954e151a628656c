"""Codecs: round trips, the frames that clients of other languages write, and bombs."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tracemalloc
import warnings
from importlib import import_module

import lz4.frame
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.wire.compression import XERIAL_HEADER, Codec, compress, decompress
from moldau.wire.records import InvalidRecord

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # kafka-python reads its schemas through a deprecated call
    kafka_python = import_module("kafka.codec")

REAL = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
TEXT = b"the river through Prague " * 20_000


@given(st.binary(max_size=100_000) | st.binary(max_size=200).map(lambda each: each * 997), st.sampled_from(Codec))
@settings(deadline=None)
def test_what_was_compressed_comes_back(data: bytes, codec: Codec) -> None:
    assert decompress(codec, compress(codec, data), bytes_max=len(data)) == data


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, lambda data: memoryview(bytearray(data))])
def test_any_buffer_will_do(codec: Codec, kind: type) -> None:
    assert decompress(codec, kind(bytes(compress(codec, kind(TEXT)))), bytes_max=len(TEXT)) == TEXT


@pytest.mark.parametrize(
    ("codec", "levels"), [(Codec.GZIP, [-1, 1, 9]), (Codec.LZ4, [1, 9, 12, 17]), (Codec.ZSTD, [-5, 1, 3, 19])]
)
def test_levels(codec: Codec, levels: list[int]) -> None:
    for level in levels:
        assert decompress(codec, compress(codec, TEXT, level=level), bytes_max=len(TEXT)) == TEXT


@pytest.mark.parametrize(
    ("codec", "theirs"),
    [
        (Codec.GZIP, kafka_python.gzip_encode),
        (Codec.SNAPPY, kafka_python.snappy_encode),
        (Codec.LZ4, kafka_python.lz4_encode),
        (Codec.ZSTD, kafka_python.zstd_encode),
    ],
)
def test_frames_of_another_client(codec: Codec, theirs: object) -> None:
    assert decompress(codec, theirs(TEXT), bytes_max=len(TEXT)) == TEXT  # type: ignore[operator]


@pytest.mark.parametrize(
    ("codec", "theirs"),
    [
        (Codec.GZIP, kafka_python.gzip_decode),
        (Codec.SNAPPY, kafka_python.snappy_decode),
        (Codec.LZ4, kafka_python.lz4_decode),
        (Codec.ZSTD, kafka_python.zstd_decode),
    ],
)
def test_another_client_reads_our_frames(codec: Codec, theirs: object) -> None:
    assert theirs(bytes(compress(codec, TEXT))) == TEXT  # type: ignore[operator]


def test_a_bare_snappy_block_as_librdkafka_and_go_clients_write_it() -> None:
    bare = kafka_python.snappy_encode(TEXT, xerial_compatible=False)
    assert decompress(Codec.SNAPPY, bare, bytes_max=len(TEXT)) == TEXT


def test_streams_that_were_appended_to_each_other() -> None:
    for codec in (Codec.GZIP, Codec.SNAPPY, Codec.ZSTD):
        twice = bytes(compress(codec, b"one ")) + bytes(compress(codec, b"two"))
        assert decompress(codec, twice, bytes_max=7) == b"one two"


def test_lz4_blocks_are_independent_since_java_reads_no_others() -> None:
    info = lz4.frame.get_frame_info(bytes(compress(Codec.LZ4, TEXT)))
    assert not info["block_linked"]
    assert info["content_size"] == 0


@pytest.mark.parametrize("codec", REAL)
def test_one_byte_beyond_the_cap_is_refused(codec: Codec) -> None:
    frame = compress(codec, TEXT)
    assert decompress(codec, frame, bytes_max=len(TEXT)) == TEXT
    with pytest.raises(InvalidRecord, match="more than"):
        decompress(codec, frame, bytes_max=len(TEXT) - 1)


@pytest.mark.parametrize("codec", REAL)
def test_a_bomb_costs_no_more_than_the_cap(codec: Codec) -> None:
    bomb = compress(codec, bytes(200_000_000))
    cap = 4 << 20
    tracemalloc.start()
    with pytest.raises(InvalidRecord, match="more than"):
        decompress(codec, bomb, bytes_max=cap)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * cap


def test_a_declared_size_is_not_believed() -> None:
    lying_snappy = b"\xff\xff\xff\xff\x07" + b"\0x"  # 2 GB of one byte
    with pytest.raises(InvalidRecord):
        decompress(Codec.SNAPPY, lying_snappy, bytes_max=1 << 40)
    lying_block = XERIAL_HEADER + b"\x7f\xff\xff\xff" + b"abc"
    with pytest.raises(InvalidRecord, match="are left"):
        decompress(Codec.SNAPPY, lying_block, bytes_max=1 << 40)
    frame = bytearray(zstandard.ZstdCompressor(write_content_size=True).compress(b"abc" * 100))
    frame[5] = 0xFF  # the content size of a short frame
    with contextlib.suppress(InvalidRecord):
        assert len(decompress(Codec.ZSTD, bytes(frame), bytes_max=1 << 40)) <= 1 << 20


@pytest.mark.parametrize("codec", REAL)
def test_a_cut_stream_is_refused_or_short(codec: Codec) -> None:
    frame = bytes(compress(codec, TEXT))
    for cut in (0, 1, 5, 10, len(frame) // 2, len(frame) - 5):
        try:
            assert len(decompress(codec, frame[:cut], bytes_max=len(TEXT))) < len(TEXT)
        except InvalidRecord:
            continue


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_a_codec_that_there_is_not(codec: int) -> None:
    with pytest.raises(InvalidRecord, match="Unknown compression type id"):
        decompress(codec, b"", bytes_max=1)


@given(st.binary(max_size=300), st.sampled_from(REAL))
@settings(deadline=None)
def test_only_the_declared_error_comes_out_of_noise(noise: bytes, codec: Codec) -> None:
    with contextlib.suppress(InvalidRecord):
        assert len(decompress(codec, noise, bytes_max=1 << 20)) <= 1 << 20


@given(st.binary(min_size=1, max_size=500), st.sampled_from(REAL), st.data())
@settings(deadline=None)
def test_only_the_declared_error_comes_out_of_damage(data: bytes, codec: Codec, draw: st.DataObject) -> None:
    frame = bytearray(compress(codec, data))
    for _ in range(3):
        frame[draw.draw(st.integers(0, len(frame) - 1))] = draw.draw(st.integers(0, 255))
    with contextlib.suppress(InvalidRecord):
        assert len(decompress(codec, frame, bytes_max=1 << 20)) <= 1 << 20


def test_no_codec_is_loaded_before_its_first_batch() -> None:
    code = (
        "import sys, moldau.wire.batch as batch; print([m for m in ('cramjam', 'lz4', 'zstandard', 'crc32c') "
        "if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
