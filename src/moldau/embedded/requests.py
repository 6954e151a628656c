"""Requests to an embedded broker by our own messages: no client library is loaded for them."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING

from moldau.embedded.overrides import as_property

if TYPE_CHECKING:
    from moldau.embedded.process import Address

CLIENT_ID = "moldau-embedded"
ANSWER_S_MAX = 30.0
CREATE_TOPICS_VERSION = 7
BROKER_DEFAULT = -1


class RequestFailed(Exception):
    """The broker refused a request; `error` is Kafka's name for the reason, such as TOPIC_ALREADY_EXISTS."""

    def __init__(self, error: str, message: str | None) -> None:
        super().__init__(f"{error}: {message}" if message else error)
        self.error = error


def create_topic(address: Address, name: str, *, partitions: int | None, config: Mapping[str, object]) -> None:
    # Imported here because most programs leave topics to their own clients.
    from moldau.core.errors import ErrorCode
    from moldau.wire.codec import decode, encode_parts
    from moldau.wire.frame import RequestHeader, read_response_header, request_parts
    from moldau.wire.messages.create_topics import (
        CreatableTopic,
        CreatableTopicConfig,
        CreateTopicsRequest,
        CreateTopicsResponse,
    )

    topic = CreatableTopic(
        name=name,
        num_partitions=BROKER_DEFAULT if partitions is None else partitions,
        replication_factor=BROKER_DEFAULT,
        configs=[CreatableTopicConfig(name=key, value=as_property(value)) for key, value in config.items()],
    )
    request = CreateTopicsRequest(topics=[topic], timeout_ms=int(ANSWER_S_MAX * 1_000))
    header = RequestHeader(request.API_KEY, CREATE_TOPICS_VERSION, 0, CLIENT_ID)
    frame = b"".join(request_parts(header, encode_parts(request, CREATE_TOPICS_VERSION), is_flexible=True))
    answer = memoryview(_exchange(address, frame))
    at = read_response_header(answer, CreateTopicsResponse, CREATE_TOPICS_VERSION)[1]
    (result,) = decode(CreateTopicsResponse, CREATE_TOPICS_VERSION, answer, at)[0].topics
    if result.error_code:
        raise RequestFailed(ErrorCode(result.error_code).name, result.error_message)


def _exchange(address: Address, frame: bytes) -> bytes:
    """One request on a connection of its own, and its answer without the size."""
    with socket.create_connection((address.host, address.port), timeout=ANSWER_S_MAX) as broker:
        broker.sendall(frame)
        return _receive(broker, int.from_bytes(_receive(broker, 4), "big"))


def _receive(broker: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        chunk = broker.recv(size - len(received))
        if not chunk:
            raise ConnectionError("the broker closed the connection without an answer")
        received += chunk
    return bytes(received)
