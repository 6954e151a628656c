"""How many bytes of keys and values there are in the records of a batch, without an object for each record.

Records of one producer are often of one shape: as long as each other, with numbers of as many bytes. So one record is
read in full, and those behind it that have its shape are found by slices with its length as their step: one slice for
every byte that is not content, which compiled code compares. What differs is read in full again, so that no length is
believed that was not looked at.
"""

from __future__ import annotations

from moldau.wire.records import InvalidRecord, Span, read_span

LOW = bytes(range(0x80))
FLIPPED = bytes(each ^ 0x80 for each in range(0x100))
RUN_MIN = 8  # fewer records of one shape are not worth the slices
UNLIKE = 64  # records that are read one by one, after one that was followed by another shape


def content_bytes(payload: bytes | bytearray, count: int) -> int:
    """Of all keys and values of exactly `count` records that fill the payload; `InvalidRecord` if they do not."""
    at = total = done = 0
    size = len(payload)
    while done < count:
        span = read_span(payload, at)
        content, step, run = max(0, span.key_size) + max(0, span.value_size), span.end - at, 1
        far = at + step * RUN_MIN
        if done + RUN_MIN < count and far < size and payload[far] == payload[at] and not span.header_count:
            run = _run(payload, span, min(count - done, (size - at) // step))
        total += run * content
        done += run
        at += run * step
        if run < RUN_MIN and done < count:
            some = min(UNLIKE, count - done)
            more, at = _one_by_one(payload, at, some)
            total += more
            done += some
    if at != size:
        raise InvalidRecord("Incorrect declared batch size, records still remaining in file")
    return total


def _one_by_one(payload: bytes | bytearray, at: int, count: int) -> tuple[int, int]:
    """The same for so many records from here on, and where the next begins. What is rare is left to `read_span`."""
    total = 0
    for _ in range(count):
        start = at
        try:
            low, high = payload[at], payload[at + 1]
            is_odd = low & 1 or low & high & 0x80  # below zero, or of three bytes and more
            if low < 0x80:
                end, at = at + 1 + (low >> 1), at + 2
            else:
                end, at = at + 2 + ((low & 0x7F | high << 7) >> 1), at + 3
            while payload[at] >= 0x80:
                at += 1
            at += 1
            while payload[at] >= 0x80:
                at += 1
            key = payload[at + 1]
            key_bytes = 0 if key & 1 else key >> 1
            at += 2 + key_bytes
            low, high = payload[at], payload[at + 1]
            value_bytes = 0 if low & 1 else low >> 1 if low < 0x80 else (low & 0x7F | high << 7) >> 1
            at += value_bytes + (1 if low < 0x80 else 2)
            is_usual = at + 1 == end and payload[at] == 0 and not (is_odd or key & 0x80 or low & high & 0x80)
        except IndexError:
            is_usual = False
        if is_usual:
            total += key_bytes + value_bytes
            at = end
        else:
            span = read_span(payload, start)
            total += max(0, span.key_size) + max(0, span.value_size)
            at = span.end
    return total, at


def _run(payload: bytes | bytearray, span: Span, most: int) -> int:
    """How many records from this one on, up to `most`, have its lengths, and deltas of as many bytes."""
    start, step = span.start, span.end - span.start
    key_end = span.key_at + max(0, span.key_size)
    same = (
        *range(start, span.body),
        *range(span.offset_end, span.key_at),
        *range(key_end, span.value_at),
        *range(span.value_at + max(0, span.value_size), span.end),
    )
    for at in same:
        most = _alike(payload[at : start + most * step : step], payload[at])
    # A varint goes on while the high bits of its bytes are set; the bytes may be any.
    for at in range(span.body + 1, span.offset_end):
        most = _as_high(payload[at : start + most * step : step], payload[at])
    return most


def _alike(column: bytes | bytearray, byte: int) -> int:
    """How many of them are this byte before one is another."""
    one = bytes((byte,))
    size = len(column)
    return size if column == one * size else size - len(column.lstrip(one))


def _as_high(column: bytes | bytearray, byte: int) -> int:
    """How many have the high bit as this one before one has not."""
    low = column if byte < 0x80 else column.translate(FLIPPED)
    return len(low) if low.isascii() else len(low) - len(low.lstrip(LOW))
