"""Requests of every API and version from one seed: plausible, absurd, damaged and cut short.

Names, ids and numbers of earlier answers come back in later requests, so that they get past the first check: a member
id that the broker gave out, a producer's epoch, a topic's id.
"""

from __future__ import annotations

import random
import struct
import time
from collections import deque
from typing import Any

from msgspec import Struct

from moldau.wire.codec import encode, is_flexible
from moldau.wire.messages.registry import REQUESTS
from moldau.wire.schema import Field, Kind, Message, fields_of
from tests.differential import batches

TOPICS = [f"noise-{index}" for index in range(4)]
GROUPS = [f"group-{index}" for index in range(4)]
TRANSACTIONS = [f"transaction-{index}" for index in range(3)]
ODD_TEXTS = ["", ".", "..", "a/b", "a\nb", "\0", "ž" * 50, "x" * 249, "x" * 250, "é" * 16_383, "x" * 32_767, "__x"]
INTERNAL = ["__consumer_offsets", "__transaction_state", "__share_group_state"]
SETTINGS = [
    "retention.ms",
    "cleanup.policy",
    "max.message.bytes",
    "segment.bytes",
    "no.such.setting",
    "compression.type",
]
PROTOCOLS = ["consumer", "range", "uniform", "connect", "classic", "cooperative-sticky"]
PATTERNS = ["noise.*", "(", "[a-z]+", "(a|b)*c", ".", "\\d"]
BITS = {Kind.INT8: 8, Kind.INT16: 16, Kind.INT32: 32, Kind.INT64: 64, Kind.UINT16: 16, Kind.UINT32: 32}
UNSIGNED = (Kind.UINT16, Kind.UINT32)
REMEMBERED = 300
SLOW_APIS_MS = 50
# What a number may be where a large one would only cost time: partitions are folders, and some requests wait.
SMALL: dict[str, list[int]] = {
    "num_partitions": [-2, -1, 0, 1, 1, 2, 3, 2**31 - 1],
    "count": [-1, 0, 1, 2, 3, 4, 2**31 - 1],
    "max_wait_ms": [-1, 0, 0, 1, 10, SLOW_APIS_MS],
    "session_timeout_ms": [-1, 0, 6_000, 6_000, 6_000, 2**31 - 1],
    "rebalance_timeout_ms": [-1, 0, 10, SLOW_APIS_MS, SLOW_APIS_MS],
    "acks": [-1, -1, -1, 0, 1, 2],
}
# Which of the texts above fit a field's name, most of the time.
FITTING: dict[str, list[str]] = {
    "topic": TOPICS + INTERNAL[:1],
    "name": TOPICS + INTERNAL + SETTINGS + PROTOCOLS,
    "group": GROUPS,
    "key": GROUPS + TRANSACTIONS,
    "transactional": TRANSACTIONS,
    "config": SETTINGS,
    "protocol": PROTOCOLS,
    "assignor": ["range", "uniform"],
    "regex": PATTERNS,
    "member_id": [""],
}
# A client may delete the coordinators' topics and set them up wrongly, but then the neighbour would notice.
ONLY_OWN = {part: [text for text in texts if text not in INTERNAL] for part, texts in FITTING.items()}
HARMFUL = ("DeleteTopicsRequest", "AlterConfigsRequest", "IncrementalAlterConfigsRequest")


class Noise:
    def __init__(self, seed: int, *, keep_off: frozenset[str | bytes] = frozenset()) -> None:
        self.chance = random.Random(seed)
        self.keep_off = keep_off
        self.fitting = FITTING
        self.texts: deque[str] = deque(maxlen=REMEMBERED)
        self.numbers: deque[int] = deque(maxlen=REMEMBERED)
        self.ids: deque[bytes] = deque(maxlen=REMEMBERED)

    def content(self, correlation_id: int) -> tuple[type[Message], int, bytes]:
        """The class, the version and a frame's content without its size."""
        chance = self.chance
        cls: type[Message] = chance.choice(REQUESTS)
        version = chance.randint(*cls.VERSIONS)
        self.fitting = ONLY_OWN if cls.__name__ in HARMFUL else FITTING
        raw = self.header(cls, version, correlation_id) + encode(self.message(cls, version), version)
        roll = chance.random()
        if roll < 0.15:
            raw = self.damaged(raw)
        elif roll < 0.2:
            raw = raw[: chance.randrange(8, len(raw) + 1)]
        elif roll < 0.22:
            raw = struct.pack(">hhi", chance.randrange(-2, 100), chance.randrange(-1, 20), correlation_id) + raw[8:]
        elif roll < 0.24:
            raw += chance.randbytes(chance.randrange(40))
        return cls, version, raw

    def header(self, cls: type[Message], version: int, correlation_id: int) -> bytes:
        client_id = None if self.chance.random() < 0.2 else self.text("client").encode()
        size = -1 if client_id is None else len(client_id)
        start = struct.pack(">hhih", cls.API_KEY, version, correlation_id, size) + (client_id or b"")
        return start + b"\0" if is_flexible(cls, version) else start

    def damaged(self, raw: bytes) -> bytes:
        changed = bytearray(raw)
        for _ in range(self.chance.randint(1, 4)):
            at = self.chance.randrange(8, len(changed)) if len(changed) > 8 else 7
            changed[at] = self.chance.choice((0, 1, 2, 0x7F, 0x80, 0xFF, self.chance.randrange(256)))
        return bytes(changed)

    def message(self, cls: Any, version: int) -> Any:
        present = (field for field in fields_of(cls) if version in field.versions)
        return cls(**{field.name: self.value(field, version) for field in present})

    def value(self, field: Field, version: int) -> Any:
        if field.is_nullable_in(version) and self.chance.random() < 0.2:
            return None
        if field.is_array:
            count = self.chance.choice((0, 1, 1, 1, 1, 2, 3)) if self.chance.random() < 0.99 else 40
            return [self.one(field, version) for _ in range(count)]
        return self.one(field, version)

    def one(self, field: Field, version: int) -> Any:
        if not isinstance(field.type, Kind):
            return self.message(field.type, version)
        if field.type is Kind.STRING:
            return self.text(field.name)
        if field.type in BITS:
            return self.number(field.name, field.type)
        if field.type is Kind.BOOL:
            return self.chance.random() < 0.5
        if field.type is Kind.FLOAT64:
            return self.chance.choice((0.0, 1.5, -1.0, 1e300))
        if field.type is Kind.UUID:
            return self.chance.choice((bytes(16), self.chance.randbytes(16), self.remembered(self.ids, bytes(16))))
        if field.type is Kind.RECORDS:
            return self.records()
        return self.chance.choice((b"", self.subscription(), self.chance.randbytes(self.chance.randrange(60))))

    def text(self, name: str) -> str:
        roll = self.chance.random()
        if roll < 0.7:
            for part, texts in self.fitting.items():
                if part in name:
                    return self.chance.choice(texts)
            return self.chance.choice(TOPICS + GROUPS)
        if roll < 0.92:
            return str(self.remembered(self.texts, ""))
        if roll < 0.98:
            return self.chance.choice(ODD_TEXTS)
        return "".join(chr(self.chance.randrange(1, 0xD7FF)) for _ in range(self.chance.randrange(10)))

    def number(self, name: str, kind: Kind) -> int:
        if name in SMALL:
            return self.chance.choice(SMALL[name])
        bits = BITS[kind]
        low, high = (0, 2**bits - 1) if kind in UNSIGNED else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        roll = self.chance.random()
        if roll < 0.6:
            found = self.chance.choice((0, 0, 0, 1, 1, 2, 3, 5, 8, 16, 100, -1, -1, -2))
        elif roll < 0.8:
            found = int(self.remembered(self.numbers, 0))
        elif roll < 0.92:
            found = self.chance.choice((low, high, high - 1, 2**31 - 1, 6_000))
        else:
            found = self.chance.randint(low, high)
        return int(min(max(found, low), high))

    def remembered(self, memory: deque[Any], otherwise: Any) -> Any:
        return self.chance.choice(memory) if memory else otherwise

    def records(self) -> bytes:
        chance = self.chance
        many = [chance.randbytes(chance.randrange(30)) for _ in range(chance.choice((1, 1, 2, 5)))]
        producer, attributes = (-1, -1, -1), 0
        if chance.random() < 0.5:
            epoch, sequence = chance.choice((0, 0, 0, 1, -1)), chance.choice((0, 0, 1, 2, -1, 2**31 - 1))
            producer = (self.number("producer_id", Kind.INT64), epoch, sequence)
            attributes = chance.choice((0, batches.TRANSACTIONAL, batches.TRANSACTIONAL, batches.CONTROL))
        made = batches.batch(
            many,
            timestamp=int(time.time() * 1000),
            attributes=attributes,
            codec=chance.choice((0, 0, 0, 1, 2, 3, 4)),
            producer=producer,
        )
        roll = chance.random()
        if roll < 0.7:
            return made
        return self.damaged(made) if roll < 0.9 else made[: chance.randrange(len(made))]

    def subscription(self) -> bytes:
        """What a member of a classic consumer group says of itself."""
        topic = self.text("topic").encode()
        return struct.pack(">hih", self.chance.choice((0, 1, 3)), 1, len(topic)) + topic + struct.pack(">i", -1)

    def learn(self, value: Any) -> None:
        """Remember what an answer holds, but for what the neighbour needs."""
        if isinstance(value, Struct):
            for name in value.__struct_fields__:
                self.learn(getattr(value, name))
        elif isinstance(value, list):
            for element in value[:5]:
                self.learn(element)
        elif isinstance(value, str):
            if value and len(value) < 300 and value not in self.keep_off:
                self.texts.append(value)
        elif isinstance(value, int):
            self.numbers.append(int(value))
        elif isinstance(value, bytes) and len(value) == 16 and value not in self.keep_off:
            self.ids.append(value)
