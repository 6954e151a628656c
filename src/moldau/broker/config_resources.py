"""The kinds of things that have a configuration, by Kafka's numbers, and how a broker is named among them."""

from __future__ import annotations

import re
from enum import IntEnum

from moldau.core.errors import ApiError, ErrorCode

_JAVA_INT = re.compile(r"[+-]?[0-9]{1,10}\Z")


class ResourceType(IntEnum):
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


RESOURCE_TYPES = frozenset(ResourceType)


def parse_broker_id(what: str, text: str) -> int:
    """The number that names a broker; `what` begins the complaint about any other text."""
    if not _JAVA_INT.match(text):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{what} id must be an integer, but it is: {text}")
    return int(text)
