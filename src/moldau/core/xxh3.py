"""XXH3 with 64 bits and without a seed, the hash that Kafka tells the topics of a group by. For short texts only.

The names are those of the algorithm's published description: https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md
"""

from __future__ import annotations

from struct import Struct, unpack_from

_MASK = 0xFFFFFFFFFFFFFFFF
_PRIME32_1, _PRIME32_2, _PRIME32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
_PRIME64_1, _PRIME64_2, _PRIME64_3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_PRIME64_4, _PRIME64_5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
_PRIME_MX1, _PRIME_MX2 = 0x165667919E3779F9, 0x9FB21C651E98DF25
_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
_STRIPE_BYTES = 64
_STRIPES_PER_BLOCK = (len(_SECRET) - _STRIPE_BYTES) // 8
_BLOCK_BYTES = _STRIPE_BYTES * _STRIPES_PER_BLOCK
_LANES = Struct("<8Q")


def xxh3_64(data: bytes) -> int:
    """As a signed number."""
    size = len(data)
    if size <= 16:
        value = _up_to_16(data, size)
    elif size <= 128:
        value = _up_to_128(data, size)
    elif size <= 240:
        value = _up_to_240(data, size)
    else:
        value = _long(data, size)
    return value - (1 << 64) if value >> 63 else value


def _u32(data: bytes, at: int) -> int:
    number: int = unpack_from("<I", data, at)[0]
    return number


def _u64(data: bytes, at: int) -> int:
    number: int = unpack_from("<Q", data, at)[0]
    return number


def _fold(left: int, right: int) -> int:
    product = left * right
    return (product & _MASK) ^ (product >> 64)


def _avalanche(value: int) -> int:
    value ^= value >> 37
    value = value * _PRIME_MX1 & _MASK
    return value ^ value >> 32


def _avalanche_64(value: int) -> int:
    value ^= value >> 33
    value = value * _PRIME64_2 & _MASK
    value ^= value >> 29
    value = value * _PRIME64_3 & _MASK
    return value ^ value >> 32


def _up_to_16(data: bytes, size: int) -> int:
    if size > 8:
        low = _u64(data, 0) ^ _u64(_SECRET, 24) ^ _u64(_SECRET, 32)
        high = _u64(data, size - 8) ^ _u64(_SECRET, 40) ^ _u64(_SECRET, 48)
        swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
        return _avalanche(size + swapped + high + _fold(low, high) & _MASK)
    if size >= 4:
        both = _u32(data, size - 4) + (_u32(data, 0) << 32)
        value = both ^ _u64(_SECRET, 8) ^ _u64(_SECRET, 16)
        value ^= (value << 49 | value >> 15) & _MASK ^ (value << 24 | value >> 40) & _MASK
        value = value * _PRIME_MX2 & _MASK
        value ^= (value >> 35) + size
        value = value * _PRIME_MX2 & _MASK
        return value ^ value >> 28
    if size:
        mixed = data[size - 1] | size << 8 | data[0] << 16 | data[size >> 1] << 24
        return _avalanche_64(mixed ^ _u32(_SECRET, 0) ^ _u32(_SECRET, 4))
    return _avalanche_64(_u64(_SECRET, 56) ^ _u64(_SECRET, 64))


def _mix(data: bytes, at: int, secret_at: int) -> int:
    return _fold(_u64(data, at) ^ _u64(_SECRET, secret_at), _u64(data, at + 8) ^ _u64(_SECRET, secret_at + 8))


def _up_to_128(data: bytes, size: int) -> int:
    value = size * _PRIME64_1
    for pair in range((size - 1) // 32 + 1):
        value += _mix(data, pair * 16, pair * 32) + _mix(data, size - (pair + 1) * 16, pair * 32 + 16)
    return _avalanche(value & _MASK)


def _up_to_240(data: bytes, size: int) -> int:
    value = size * _PRIME64_1
    for chunk in range(8):
        value += _mix(data, chunk * 16, chunk * 16)
    value = _avalanche(value & _MASK)
    for chunk in range(8, size // 16):
        value += _mix(data, chunk * 16, (chunk - 8) * 16 + 3)
    value += _mix(data, size - 16, 136 - 17)
    return _avalanche(value & _MASK)


def _long(data: bytes, size: int) -> int:
    lanes = [
        _PRIME32_3, _PRIME64_1, _PRIME64_2, _PRIME64_3, _PRIME64_4, _PRIME32_2, _PRIME64_5, _PRIME32_1,
    ]  # fmt: skip
    blocks = (size - 1) // _BLOCK_BYTES
    for block in range(blocks):
        for stripe in range(_STRIPES_PER_BLOCK):
            _accumulate(lanes, data, block * _BLOCK_BYTES + stripe * _STRIPE_BYTES, stripe * 8)
        _scramble(lanes)
    rest = blocks * _BLOCK_BYTES
    for stripe in range((size - 1 - rest) // _STRIPE_BYTES):
        _accumulate(lanes, data, rest + stripe * _STRIPE_BYTES, stripe * 8)
    _accumulate(lanes, data, size - _STRIPE_BYTES, len(_SECRET) - _STRIPE_BYTES - 7)
    value = size * _PRIME64_1
    for pair in range(4):
        left = lanes[pair * 2] ^ _u64(_SECRET, 11 + pair * 16)
        value += _fold(left, lanes[pair * 2 + 1] ^ _u64(_SECRET, 19 + pair * 16))
    return _avalanche(value & _MASK)


def _accumulate(lanes: list[int], data: bytes, at: int, secret_at: int) -> None:
    words, keys = _LANES.unpack_from(data, at), _LANES.unpack_from(_SECRET, secret_at)
    for lane in range(8):
        word = words[lane]
        key = word ^ keys[lane]
        lanes[lane ^ 1] = lanes[lane ^ 1] + word & _MASK
        lanes[lane] = lanes[lane] + (key & 0xFFFFFFFF) * (key >> 32) & _MASK


def _scramble(lanes: list[int]) -> None:
    keys = _LANES.unpack_from(_SECRET, len(_SECRET) - _STRIPE_BYTES)
    for lane in range(8):
        value = lanes[lane]
        lanes[lane] = ((value ^ value >> 47) ^ keys[lane]) * _PRIME32_1 & _MASK
