"""The header of a request that came. To read it takes all messages, which whoever only asks need not load."""

from __future__ import annotations

from collections.abc import Mapping

from moldau.core.errors import ProtocolViolation, Truncated
from moldau.wire.decoding import skip_tags
from moldau.wire.frame import REQUEST_START, RequestHeader
from moldau.wire.messages.registry import FLEXIBLE_FROM


def read_request_header(
    view: memoryview, flexible_from: Mapping[int, int] = FLEXIBLE_FROM
) -> tuple[RequestHeader, int]:
    """The header at the start of a frame's content, and the position where the message begins.

    `flexible_from` gives an api key's first flexible version. The header of a key it lacks is read as one of version 1,
    which all headers begin with, so that the caller can say which key it was.
    """
    have = len(view)
    if have < REQUEST_START.size:
        raise Truncated(needed=REQUEST_START.size, have=have)
    api_key, api_version, correlation_id, size = REQUEST_START.unpack_from(view)
    at = REQUEST_START.size
    client_id = None
    if size >= 0:
        end = at + size
        if end > have:
            raise Truncated(needed=end, have=have)
        client_id = _text(view[at:end])
        at = end
    elif size != -1:
        raise ProtocolViolation(f"a client id may not have a length of {size}")
    # The client id keeps its old form in version 2 too: that way a broker can read the name of whoever speaks a
    # version that it doesn't know.
    if api_version >= flexible_from.get(api_key, api_version + 1):
        at = skip_tags(view, at)
    return RequestHeader(api_key, api_version, correlation_id, client_id), at


def _text(raw: memoryview) -> str:
    try:
        return str(raw, "utf-8")
    except UnicodeDecodeError as wrong:
        raise ProtocolViolation(f"a client id is not UTF-8: {wrong}") from None
