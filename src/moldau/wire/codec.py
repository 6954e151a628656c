"""Bytes from messages and messages from bytes.

A message class is the only definition of its API. The functions here compile, on first use, a straight-line encoder or
decoder for one class at one version, as dataclasses do with their methods.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar

from msgspec import Struct

from moldau.core.limits import ELEMENTS_MAX
from moldau.wire.decoding import Decoder, compile_decoder
from moldau.wire.encoding import Encoder, compile_encoder
from moldau.wire.schema import Message

M = TypeVar("M", bound=Message)


def is_flexible(cls: type[Message], version: int) -> bool:
    """Whether this version has compact lengths and tagged fields."""
    return version >= cls.FLEXIBLE_FROM


@cache
def decoder(cls: type[Message], version: int, elements_max: int = ELEMENTS_MAX) -> Decoder:
    """A function (view, at) -> (message, end). It raises ProtocolViolation on bytes that are no such message.

    `elements_max` is for all arrays of the message together.
    """
    _check_version(cls, version)
    flexible = is_flexible(cls, version)
    return compile_decoder(_struct(cls), version, is_flexible=flexible, elements_max=elements_max)


@cache
def encoder(cls: type[Message], version: int) -> Encoder:
    """A function (message, parts) that appends the message's buffers to parts.

    It raises EncodeError, and nothing else, when the message holds what the version cannot carry.
    """
    _check_version(cls, version)
    return compile_encoder(_struct(cls), version, is_flexible=is_flexible(cls, version))


@cache
def encoder_in_steps(cls: type[Message], version: int) -> Encoder:
    """The same for a message of very many rows, which a thread encodes: it holds up no other thread for long."""
    _check_version(cls, version)
    return compile_encoder(_struct(cls), version, is_flexible=is_flexible(cls, version), in_steps=True)


def decode(cls: type[M], version: int, buffer: bytes | bytearray | memoryview, at: int = 0) -> tuple[M, int]:
    """The message that begins at a position, and the position after it. Its byte fields are views of the buffer."""
    message, end = decoder(cls, version)(memoryview(buffer), at)
    return message, end


def encode_parts(message: Message, version: int) -> list[Any]:
    """The message's bytes as buffers in order; records stand among them as they were given."""
    parts: list[Any] = []
    encoder(type(message), version)(message, parts)
    return parts


def encode(message: Message, version: int) -> bytes:
    """The message's bytes in one piece, for a message whose records, if any, are buffers."""
    return b"".join(encode_parts(message, version))


def _check_version(cls: type[Message], version: int) -> None:
    oldest, newest = cls.VERSIONS
    if not oldest <= version <= newest:
        raise ValueError(f"{cls.__name__} has versions {oldest} to {newest}, not {version}")


def _struct(cls: type[Message]) -> type[Struct]:
    assert issubclass(cls, Struct), f"{cls.__name__} is no msgspec.Struct"
    return cls
