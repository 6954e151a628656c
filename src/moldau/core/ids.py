"""Names for the integers and identifiers that must not be mixed up."""

from __future__ import annotations

import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import NamedTuple, NewType

Offset = NewType("Offset", int)
ProducerId = NewType("ProducerId", int)
TopicId = NewType("TopicId", bytes)
AclId = NewType("AclId", bytes)

UUID_BYTES = 16
ZERO_UUID = TopicId(bytes(UUID_BYTES))

NO_LEADER = -1
NO_OFFSET = -1
NO_PARTITION_LEADER_EPOCH = -1  # a client that believes in no leader


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def format_uuid(uuid: bytes) -> str:
    """Kafka's notation: url-safe base64 without padding."""
    return urlsafe_b64encode(uuid).rstrip(b"=").decode()


def parse_uuid(text: str) -> TopicId:
    try:
        uuid = urlsafe_b64decode(text + "==")
    except ValueError as wrong:
        raise ValueError(f"{text!r} is not a url-safe base64 uuid") from wrong
    if len(uuid) != UUID_BYTES:
        raise ValueError(f"{text!r} holds {len(uuid)} bytes; a uuid has {UUID_BYTES}")
    return TopicId(uuid)


def random_uuid() -> TopicId:
    """A version 4 uuid that is neither reserved nor, when printed, mistaken for a command-line option."""
    while True:
        raw = bytearray(os.urandom(UUID_BYTES))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        uuid = TopicId(bytes(raw))
        if not format_uuid(uuid).startswith("-"):
            return uuid
