"""What a broker's `/metrics`, `/health` and `/ready` answer, read as Prometheus reads it."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from prometheus_client.parser import text_string_to_metric_families


class Answered(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


def get(url: str, path: str | None = None, *, method: str = "GET") -> Answered:
    """`path` takes the place of that in the URL."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    connection = HTTPConnection(parts.hostname, parts.port, timeout=20)
    try:
        connection.request(method, path or parts.path)
        answer = connection.getresponse()
        return Answered(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
    finally:
        connection.close()


class Scrape:
    """The samples of one scrape by name and labels, parsed as Prometheus' own library does."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.families = {family.name: family for family in text_string_to_metric_families(text)}
        self.samples: dict[str, list[tuple[dict[str, str], float]]] = {}
        for family in self.families.values():
            for sample in family.samples:
                self.samples.setdefault(sample.name, []).append((dict(sample.labels), sample.value))

    def value(self, name: str, **labels: str) -> float:
        """Of the one sample with these labels, and perhaps others."""
        found = self.all(name, **labels)
        assert len(found) == 1, f"{len(found)} samples of {name} {labels}: {self.samples.get(name)}"
        return found[0]

    def sum(self, name: str, **labels: str) -> float:
        return sum(self.all(name, **labels))

    def all(self, name: str, **labels: str) -> list[float]:
        return [value for found, value in self.samples.get(name, []) if labels.items() <= found.items()]


def scrape(url: str | None) -> Scrape:
    assert url is not None, "metrics are off"
    answered = get(url)
    assert answered.status == 200, answered
    assert answered.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return Scrape(answered.body.decode())
