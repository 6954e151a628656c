"""Questions to whoever issues tokens: over TLS, to the host of the URL and no other, for so long and so many bytes."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from http.client import HTTPException, HTTPResponse
from time import monotonic
from typing import Final
from urllib.request import HTTPSHandler, OpenerDirector, Request, UnknownHandler

from moldau.core.limits import KIB

PIECE_BYTES: Final = 64 * KIB
FAILURES: Final = (OSError, HTTPException, ValueError)  # of `ask`


def ask(
    url: str,
    *,
    seconds: float,
    bytes_max: int,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    authorities: str | None = None,
) -> tuple[int, bytes]:
    """Status and content of an https: URL, without redirections; one byte more than `bytes_max` if there are more.

    `authorities` are the certificates of those who are trusted, the system's if None.
    """
    opener = OpenerDirector()
    opener.add_handler(HTTPSHandler(context=ssl.create_default_context(cadata=authorities)))
    opener.add_handler(UnknownHandler())
    with opener.open(Request(url, data=body, headers=dict(headers or {})), timeout=seconds) as answer:
        return answer.status, _read(answer, bytes_max, seconds)


def _read(answer: HTTPResponse, bytes_max: int, seconds: float) -> bytes:
    """The time limit of a socket is for each piece of an answer, which may drip."""
    end_s, content = monotonic() + seconds, bytearray()
    while len(content) <= bytes_max and (piece := answer.read1(PIECE_BYTES)):
        content += piece
        if monotonic() > end_s:
            raise TimeoutError(f"no whole answer within {seconds:g} s")
    return bytes(content[: bytes_max + 1])


def reason(wrong: Exception) -> str:
    """Of one of the failures."""
    return str(getattr(wrong, "strerror", None) or getattr(wrong, "reason", None) or wrong)
