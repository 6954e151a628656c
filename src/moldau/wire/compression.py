"""The codecs of record batches.

Output is capped, and grows with what a stream really yields: a size that a stream declares is never believed, so a bomb
costs a peer more than it costs us. Each codec's library is imported when its first batch arrives.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from enum import IntEnum
from typing import Any, Protocol

from moldau.wire.records import Buffer, InvalidRecord

CHUNK_BYTES = 1 << 20  # streams are read in pieces, so that a cap much larger than the content costs nothing

XERIAL_MAGIC = b"\x82SNAPPY\x00"
XERIAL_HEADER = XERIAL_MAGIC + struct.pack(">ii", 1, 1)
XERIAL_BLOCK_BYTES = 32 * 1024  # what Java's library writes; its reader takes any size
SNAPPY_EXPANSION_MAX = 22  # a copy element of 3 bytes yields at most 64
LZ4_LEVEL_FAST = 9  # Kafka's default level does not name a level but lz4's fast compressor
ZSTD_LEVEL_DEFAULT = 3


class Codec(IntEnum):
    """The low bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class _Stream(Protocol):
    """A decoder that yields up to so many bytes a call, and none when it is through."""

    def __call__(self, size: int, /) -> bytes: ...


def compress(codec: int, data: Buffer, *, level: int | None = None) -> Buffer:
    """Compressed as Kafka's Java client does it; `level` is the codec's own, None its default."""
    return _COMPRESS[codec](data, level)


def decompress(codec: int, data: Buffer, *, bytes_max: int) -> Buffer:
    """`InvalidRecord` comes out for a codec that there is not, for broken data and for more than `bytes_max`."""
    try:
        inflate = _DECOMPRESS[codec]
    except KeyError:
        raise InvalidRecord(f"Unknown compression type id: {codec}") from None
    try:
        return inflate(data, bytes_max)
    except InvalidRecord:
        raise
    except Exception as broken:  # every library has its own exception, and some raise more than that
        raise InvalidRecord(f"Failed to decompress record stream of {Codec(codec).name.lower()}: {broken}") from broken


def _too_large(bytes_max: int) -> InvalidRecord:
    return InvalidRecord(f"Record batch decompresses to more than {bytes_max} bytes")


def _collect(read: _Stream, bytes_max: int) -> Buffer:
    first = read(min(CHUNK_BYTES, bytes_max + 1))
    if len(first) < CHUNK_BYTES:
        second = read(1)
        if not second and len(first) <= bytes_max:
            return first
        out = bytearray(first + second)
    else:
        out = bytearray(first)
    while len(out) <= bytes_max:
        piece = read(min(CHUNK_BYTES, bytes_max + 1 - len(out)))
        if not piece:
            return out
        out += piece
    raise _too_large(bytes_max)


def _same(data: Buffer, _level: int | None) -> Buffer:
    return data


def _whole(data: Buffer, _bytes_max: int) -> Buffer:
    return data


def _gzip(data: Buffer, level: int | None) -> Buffer:
    import zlib

    return zlib.compress(data, -1 if level is None else level, wbits=31)


def _gunzip(data: Buffer, bytes_max: int) -> Buffer:
    import zlib

    member = zlib.decompressobj(wbits=31)
    rest: Buffer = data

    def read(size: int) -> bytes:
        nonlocal member, rest
        while True:
            piece = member.decompress(rest, size)
            rest = member.unconsumed_tail
            if piece:
                return piece
            if not member.eof:
                raise InvalidRecord("Incorrect declared batch size, premature EOF reached")
            rest = member.unused_data
            if not rest:
                return b""
            member = zlib.decompressobj(wbits=31)

    return _collect(read, bytes_max)


def _snap(data: Buffer, _level: int | None) -> Buffer:
    import cramjam

    out = bytearray(XERIAL_HEADER)
    view = memoryview(data)
    for at in range(0, len(view), XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(view[at : at + XERIAL_BLOCK_BYTES]))
        out += len(block).to_bytes(4, "big")
        out += block
    return out


def _unsnap(data: Buffer, bytes_max: int) -> Buffer:
    """Java and Python clients write xerial's frames of blocks; librdkafka and Go clients one bare block."""
    import cramjam

    view = memoryview(data)
    blocks = _xerial_blocks(view) if view[: len(XERIAL_MAGIC)] == XERIAL_MAGIC else [view]
    sizes = [cramjam.snappy.decompress_raw_len(block) for block in blocks]
    if sum(sizes) > bytes_max:
        raise _too_large(bytes_max)
    if any(size > len(block) * SNAPPY_EXPANSION_MAX for block, size in zip(blocks, sizes, strict=True)):
        raise InvalidRecord("A snappy block declares more than it can hold")
    out = bytearray(sum(sizes))
    target, at = memoryview(out), 0
    for block, size in zip(blocks, sizes, strict=True):
        if cramjam.snappy.decompress_raw_into(block, target[at : at + size]) != size:
            raise InvalidRecord("A snappy block holds less than it declares")
        at += size
    return out


def _xerial_blocks(view: memoryview) -> list[memoryview]:
    blocks = []
    at = 0
    while at < len(view):
        if view[at : at + len(XERIAL_MAGIC)] == XERIAL_MAGIC:  # streams may be appended to each other, headers and all
            at += len(XERIAL_HEADER)
            continue
        size = int.from_bytes(view[at : at + 4], "big")
        at += 4
        if size > len(view) - at:
            raise InvalidRecord(f"A snappy block of {size} bytes where {len(view) - at} are left")
        blocks.append(view[at : at + size])
        at += size
    return blocks


def _lz4(data: Buffer, level: int | None) -> Buffer:
    """Independent blocks: Kafka's own reader refuses linked ones, which this library would otherwise write."""
    import lz4.frame

    frame: bytes = lz4.frame.compress(
        data,
        compression_level=0 if level is None or level == LZ4_LEVEL_FAST else level,
        block_size=lz4.frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        store_size=False,
    )
    return frame


def _unlz4(data: Buffer, bytes_max: int) -> Buffer:
    import lz4.frame

    frame = lz4.frame.LZ4FrameDecompressor()
    rest: Buffer = data

    def read(size: int) -> bytes:
        nonlocal rest
        if frame.eof:
            return b""
        piece: bytes = frame.decompress(rest, max_length=size)
        rest = b""  # what was not used up yet is kept inside
        if not piece and not frame.eof:
            raise InvalidRecord("Incorrect declared batch size, premature EOF reached")
        return piece

    return _collect(read, bytes_max)


def _zstd(data: Buffer, level: int | None) -> Buffer:
    import zstandard

    frame: bytes = zstandard.ZstdCompressor(level=ZSTD_LEVEL_DEFAULT if level is None else level).compress(data)
    return frame


def _unzstd(data: Buffer, bytes_max: int) -> Buffer:
    import zstandard

    with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as stream:
        read: Any = stream.read
        return _collect(read, bytes_max)


_COMPRESS: dict[int, Callable[[Buffer, int | None], Buffer]] = {
    Codec.NONE: _same,
    Codec.GZIP: _gzip,
    Codec.SNAPPY: _snap,
    Codec.LZ4: _lz4,
    Codec.ZSTD: _zstd,
}
_DECOMPRESS: dict[int, Callable[[Buffer, int], Buffer]] = {
    Codec.NONE: _whole,
    Codec.GZIP: _gunzip,
    Codec.SNAPPY: _unsnap,
    Codec.LZ4: _unlz4,
    Codec.ZSTD: _unzstd,
}
