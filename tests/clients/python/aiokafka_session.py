"""A session of aiokafka on a secured listener; tests/clients/sessions.py describes the requests."""

from __future__ import annotations

import asyncio
import logging
import ssl
import sys
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider

from tests.clients.python.line_protocol import Reply, Request, serve_async

STEP_S_MAX = 20.0
LINE_BYTES_MAX = 64 << 20


class Token(AbstractTokenProvider):  # type: ignore[misc]
    def __init__(self, token: str) -> None:
        self._token = token

    async def token(self) -> str:
        return self._token


def settings(request: Request) -> dict[str, Any]:
    chosen: dict[str, Any] = {"bootstrap_servers": request["bootstrap"], "security_protocol": request["protocol"]}
    if "SSL" in request["protocol"]:
        chosen["ssl_context"] = ssl.create_default_context(cafile=request["trusted"])
        if request["certificate"]:
            chosen["ssl_context"].load_cert_chain(request["certificate"])
    if request["mechanism"]:
        chosen |= {
            "sasl_mechanism": request["mechanism"],
            "sasl_plain_username": request["user"],
            "sasl_plain_password": request["password"],
            "sasl_oauth_token_provider": Token(request["token"]) if request["token"] else None,
        }
    return chosen


class LastError(logging.Handler):
    """The library logs why it could not connect, and raises only that it could not."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.cause: Exception | None = None

    def emit(self, record: logging.LogRecord) -> None:
        causes = [each for each in record.args or () if isinstance(each, Exception)]
        self.cause = causes[-1] if causes else self.cause


class Sessions:
    def __init__(self, errors: LastError) -> None:
        self.errors = errors

    async def session(self, request: Request) -> Reply:
        self.errors.cause = None
        try:
            return {"read": await self.produce_and_read(request)}
        except Exception as error:
            raise self.errors.cause or error from error

    async def produce_and_read(self, request: Request) -> list[str]:
        found: list[str] = []
        consumer = AIOKafkaConsumer(
            request["topic"],
            group_id=request["group"],
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            **settings(request),
        )
        async with AIOKafkaProducer(**settings(request)) as producer, consumer:
            for values in request["batches"]:
                sent = [await producer.send(request["topic"], value.encode()) for value in values]
                await asyncio.wait_for(asyncio.gather(*sent), STEP_S_MAX)
                for _ in values:
                    found.append((await asyncio.wait_for(consumer.getone(), STEP_S_MAX)).value.decode())
                await consumer.commit()
                await asyncio.sleep(request["pause_ms"] / 1_000)
        return found


async def main() -> None:
    errors = LastError()
    library = logging.getLogger("aiokafka")
    library.addHandler(errors)
    library.propagate = False
    lines = asyncio.StreamReader(limit=LINE_BYTES_MAX)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    await serve_async(Sessions(errors), lines.readline)


if __name__ == "__main__":
    asyncio.run(main())
