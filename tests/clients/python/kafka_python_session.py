"""A session of kafka-python on a secured listener; tests/clients/sessions.py describes the requests."""

from __future__ import annotations

import logging
import time
from typing import Any

from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaTimeoutError, SaslAuthenticationFailedError
from kafka.net.sasl.oauth import AbstractTokenProvider

from tests.clients.python.line_protocol import Reply, Request, serve

STEP_S_MAX = 20.0
BOOTSTRAP_MS_MAX = 2_000  # it tries again that long, whatever the reason


class Token(AbstractTokenProvider):  # type: ignore[misc]
    def __init__(self, token: str) -> None:
        super().__init__()
        self._token = token

    def token(self) -> str:
        return self._token


def settings(request: Request) -> dict[str, Any]:
    chosen: dict[str, Any] = {
        "bootstrap_servers": request["bootstrap"],
        "bootstrap_timeout_ms": BOOTSTRAP_MS_MAX,
        "security_protocol": request["protocol"],
        "ssl_cafile": request["trusted"],
        "ssl_certfile": request["certificate"],
        "ssl_keyfile": request["certificate"],
        "sasl_mechanism": request["mechanism"],
    }
    if request["mechanism"] == "OAUTHBEARER":
        chosen["sasl_oauth_token_provider"] = Token(request["token"])
    elif request["mechanism"]:
        chosen |= {"sasl_plain_username": request["user"], "sasl_plain_password": request["password"]}
    return chosen


class Refusal(logging.Handler):
    """The library logs why it could not log in, and raises only that it could not connect."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.heard: SaslAuthenticationFailedError | None = None

    def emit(self, record: logging.LogRecord) -> None:
        for each in record.args or ():
            if isinstance(each, SaslAuthenticationFailedError):
                self.heard = each


class Sessions:
    def __init__(self, refusal: Refusal) -> None:
        self.refusal = refusal

    def session(self, request: Request) -> Reply:
        self.refusal.heard = None
        try:
            return {"read": self.produce_and_read(request)}
        except KafkaTimeoutError as error:
            raise self.refusal.heard or error from error

    def produce_and_read(self, request: Request) -> list[str]:
        found: list[str] = []
        producer = KafkaProducer(**settings(request), max_block_ms=20_000)
        try:
            consumer = KafkaConsumer(
                request["topic"],
                group_id=request["group"],
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                **settings(request),
            )
            try:
                for values in request["batches"]:
                    sent = [producer.send(request["topic"], value.encode()) for value in values]
                    for each in sent:
                        each.get(timeout=STEP_S_MAX)
                    found += read(consumer, len(values))
                    time.sleep(request["pause_ms"] / 1_000)
            finally:
                consumer.close()
        finally:
            producer.close(timeout=1)
        return found


def read(consumer: Any, count: int) -> list[str]:
    found: list[str] = []
    deadline_s = time.monotonic() + STEP_S_MAX
    while len(found) < count:
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"read {len(found)} of {count} records")
        for records in consumer.poll(timeout_ms=500).values():
            found += [record.value.decode() for record in records]
    consumer.commit()
    return found


if __name__ == "__main__":
    refusal = Refusal()
    library = logging.getLogger("kafka")
    library.addHandler(refusal)
    library.propagate = False
    serve(Sessions(refusal))
