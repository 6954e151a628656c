"""How a broker is named where configurations are described and changed."""

from __future__ import annotations

import re
from typing import Protocol

from moldau.broker.context import Context
from moldau.core.errors import ApiError, ErrorCode

_JAVA_INT = re.compile(r"[+-]?[0-9]{1,10}\Z")


def parse_broker_id(what: str, text: str) -> int:
    """The number that names a broker; `what` begins the complaint about any other text."""
    if not _JAVA_INT.match(text):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{what} id must be an integer, but it is: {text}")
    return int(text)


class ConfigResource(Protocol):
    """Of a request that changes configurations."""

    resource_type: int
    resource_name: str


def resource_of(resource: ConfigResource, _: Context) -> tuple[int, str]:
    """A resource that is named twice is refused both times."""
    return resource.resource_type, resource.resource_name
