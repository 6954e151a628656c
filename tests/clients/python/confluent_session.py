"""A session of librdkafka on a secured listener; tests/clients/sessions.py describes the requests."""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from tests.clients.python.line_protocol import Reply, Request, serve

STEP_S_MAX = 20.0


def settings(request: Request) -> dict[str, Any]:
    chosen: dict[str, Any] = {
        "bootstrap.servers": request["bootstrap"],
        "security.protocol": request["protocol"],
        "sasl.mechanism": request["mechanism"],
        "log_level": 0,
    }
    if "SSL" in request["protocol"]:
        chosen["ssl.ca.location"] = request["trusted"]
    if request["certificate"]:
        chosen |= {"ssl.certificate.location": request["certificate"], "ssl.key.location": request["certificate"]}
    if request["mechanism"] == "OAUTHBEARER":
        chosen["oauth_cb"] = lambda _: (request["token"], time.time() + 600)
    elif request["mechanism"]:
        chosen |= {"sasl.username": request["user"], "sasl.password": request["password"]}
    return {key: value for key, value in chosen.items() if value is not None}


class Session:
    def __init__(self, request: Request) -> None:
        self.topic: str = request["topic"]
        self.refused: list[KafkaError] = []
        given = {**settings(request), "error_cb": self.heard}
        self.producer = Producer({**given, "message.timeout.ms": 20_000})
        group = {"group.id": request["group"], "auto.offset.reset": "earliest", "enable.auto.commit": False}
        self.consumer = Consumer({**given, **group})

    def heard(self, error: KafkaError) -> None:
        """librdkafka tries again for ever, and tells a callback why; of TLS it says so in the text alone."""
        if error.code() == KafkaError._AUTHENTICATION or "SSL" in error.str():
            self.refused.append(error)

    def raise_if_refused(self) -> None:
        if self.refused:
            raise KafkaException(self.refused[0])

    def send(self, values: list[str]) -> None:
        failed: list[KafkaError] = []
        for value in values:
            self.producer.produce(
                self.topic, value.encode(), on_delivery=lambda error, _: failed.append(error) if error else None
            )
        deadline_s = time.monotonic() + STEP_S_MAX
        while self.producer.flush(0.05):
            self.raise_if_refused()
            if time.monotonic() > deadline_s:
                raise TimeoutError("the records were not acknowledged")
        if failed:
            raise KafkaException(failed[0])

    def read(self, count: int) -> list[str]:
        found: list[str] = []
        deadline_s = time.monotonic() + STEP_S_MAX
        while len(found) < count:
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"read {len(found)} of {count} records")
            for message in self.consumer.consume(count - len(found), timeout=0.05):
                if message.error() is not None:
                    raise KafkaException(message.error())
                found.append(message.value().decode())
            self.raise_if_refused()
        self.consumer.commit(asynchronous=False)
        return found


class Sessions:
    def session(self, request: Request) -> Reply:
        session = Session(request)
        found: list[str] = []
        try:
            for values in request["batches"]:
                session.send(values)
                if not found:
                    session.consumer.subscribe([request["topic"]])
                found += session.read(len(values))
                time.sleep(request["pause_ms"] / 1_000)
        finally:
            session.producer.purge()
            session.consumer.close()
        return {"read": found}


if __name__ == "__main__":
    serve(Sessions())
