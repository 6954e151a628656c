"""The server side of the drivers' JSON lines for clients that are written in Python."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

Request = dict[str, Any]
Reply = dict[str, Any]


def decoded(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def encoded(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def failure(error: Exception) -> Reply:
    """Kafka's number of an error where the client keeps it: `code()` of librdkafka's errors, `errno` of the others'."""
    inner: Any = error.args[0] if error.args and hasattr(error.args[0], "code") else error
    code = inner.code() if callable(getattr(inner, "code", None)) else getattr(inner, "errno", None)
    name = inner.name() if callable(getattr(inner, "name", None)) else type(inner).__name__
    return {"error": {"code": code if isinstance(code, int) else None, "name": name, "message": str(error)}}


def serve(operations: object) -> None:
    """Answer each line with the result of the method that it names, until the end of the input."""
    for line in sys.stdin:
        request = json.loads(line)
        reply: Reply
        try:
            reply = {"ok": getattr(operations, request["op"])(request)}
        except Exception as error:
            reply = failure(error)
        answer(reply)


async def serve_async(operations: object, next_line: Callable[[], Awaitable[bytes]]) -> None:
    while line := await next_line():
        request = json.loads(line)
        reply: Reply
        try:
            reply = {"ok": await getattr(operations, request["op"])(request)}
        except Exception as error:
            reply = failure(error)
        answer(reply)


def answer(reply: Reply) -> None:
    sys.stdout.write(json.dumps(reply) + "\n")
    sys.stdout.flush()
