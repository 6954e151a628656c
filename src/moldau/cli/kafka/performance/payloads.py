"""What a performance test sends: random letters, lines of a file, or numbers that grow."""

from __future__ import annotations

import random
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from moldau.cli.failures import UsageError

Message: TypeAlias = dict[str, Any]  # as librdkafka's batches take them
Payloads: TypeAlias = Callable[[int, int], list[Message]]

# So many different payloads are made before the test and sent in turn: making each anew would measure the making.
POOL_BYTES_MAX = 32 << 20
POOL_RECORDS_MAX = 20_000
SEED = 0  # the same on every run, as with Apache Kafka's tool

_LETTERS = bytes(ord("A") + n % 26 for n in range(256))


def payloads_of(options: Namespace) -> Payloads:
    """A function of how many were sent and how many are wanted."""
    if options.payload_monotonic:
        return lambda sent, count: [{"value": str(n).encode()} for n in range(sent, sent + count)]
    chance = random.Random(SEED)
    if options.payload_file is not None:
        lines = read_payloads(options.payload_file, options.payload_delimiter)
        return lambda _sent, count: chance.choices(lines, k=count)
    return _random_letters(chance, options.record_size, options.num_records)


def _random_letters(chance: random.Random, size: int, wanted: int) -> Payloads:
    count = max(1, min(POOL_RECORDS_MAX, POOL_BYTES_MAX // size, wanted))
    pool: list[Message] = [{"value": chance.randbytes(size).translate(_LETTERS)} for _ in range(count)]

    def next_of(sent: int, count: int) -> list[Message]:
        first = sent % len(pool)
        found = pool[first : first + count]
        while len(found) < count:
            found += pool[: count - len(found)]
        return found

    return next_of


def read_payloads(path: str, delimiter: str) -> list[Message]:
    print(f"Reading payloads from: {Path(path).absolute()}")
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as wrong:
        raise UsageError(f"--payload-file: cannot read {path}: {wrong.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"--payload-file: {path} is no text in UTF-8") from None
    if not text:
        raise UsageError(f"--payload-file: {path} is empty")
    lines = text.removesuffix(delimiter).split(delimiter)
    print(f"Number of messages read: {len(lines)}")
    return [{"value": line.encode()} for line in lines]
