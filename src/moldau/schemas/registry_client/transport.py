"""Requests over HTTP to the first of a registry's URLs that answers, on connections that are kept."""

from __future__ import annotations

import http.client
import json
import os
import random
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

from moldau.schemas.registry_client.errors import RegistryError, RegistryUnreachable
from moldau.schemas.registry_client.settings import Endpoint, Settings

CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
ACCEPTED = f"{CONTENT_TYPE}, application/vnd.schemaregistry+json, application/json"
ANSWER_BYTES_MAX = 32 << 20
PASSING = (408, 429, 500, 502, 503, 504)
IDLE_MAX = 8  # kept connections; more are made where more threads ask at once

Connection = http.client.HTTPConnection


class _Failed(Exception):
    """One URL did not answer, or with a failure that passes."""

    def __init__(self, words: str, error: RegistryError | None = None) -> None:
        super().__init__(words)
        self.error = error


class Transport:
    """Any number of threads may ask at once. A forked process makes connections of its own."""

    def __init__(self, settings: Settings, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._settings = settings
        self._sleep = sleep
        self._lock = threading.Lock()
        self._idle: list[tuple[Endpoint, Connection]] = []
        self._process = os.getpid()
        self._first = 0  # the URL that answered last
        self._tls: ssl.SSLContext | None = None

    @property
    def url(self) -> str:
        return ", ".join(map(str, self._settings.endpoints))

    def request(self, method: str, path: str, *, query: Mapping[str, Any] | None = None, body: Any = None) -> Any:
        """The answer's JSON. Raises RegistryError."""
        settings = self._settings
        asked = {name: _flag(value) for name, value in (query or {}).items() if value not in (None, False)}
        target = path + (f"?{urlencode(asked)}" if asked else "")
        failed: _Failed | None = None
        for attempt in range(settings.retries + 1):
            if attempt:
                wait_ms = min(settings.retry_wait_ms * 2 ** (attempt - 1), settings.retry_wait_ms_max)
                self._sleep(wait_ms * (0.5 + random.random() / 2) / 1000)
            for turn in range(len(settings.endpoints)):
                number = (self._first + turn) % len(settings.endpoints)
                try:
                    answer = self._ask(settings.endpoints[number], method, target, body)
                except _Failed as one:
                    failed = one
                    continue
                self._first = number
                return answer
        assert failed is not None
        raise failed.error or RegistryUnreachable(str(failed), self.url)

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()

    def _ask(self, endpoint: Endpoint, method: str, target: str, body: Any) -> Any:
        sent = None if body is None else json.dumps(body).encode()
        while True:
            kept = self._take(endpoint)
            connection = kept or self._connect(endpoint)
            try:
                connection.request(method, endpoint.path + target, sent, self._headers(endpoint))
                response = connection.getresponse()
                content = response.read(ANSWER_BYTES_MAX + 1)
            except (OSError, http.client.HTTPException) as wrong:
                connection.close()
                if kept is not None and not isinstance(wrong, TimeoutError):
                    continue  # the registry had closed it meanwhile: a new one tells whether it is there
                raise _Failed(_words(wrong)) from wrong
            if len(content) > ANSWER_BYTES_MAX:
                connection.close()
                raise RegistryError(response.status, f"an answer of more than {ANSWER_BYTES_MAX} bytes", str(endpoint))
            self._keep(endpoint, connection, response)
            return _answer(endpoint, response, content)

    def _headers(self, endpoint: Endpoint) -> dict[str, str]:
        headers = {"Accept": ACCEPTED, "Content-Type": CONTENT_TYPE, "User-Agent": "moldau"}
        authorization = self._settings.authorization(endpoint)
        if authorization is not None:
            headers["Authorization"] = authorization
        return headers | dict(self._settings.token_headers)

    def _connect(self, endpoint: Endpoint) -> Connection:
        timeout = self._settings.timeout_s
        if endpoint.scheme == "http":
            return Connection(endpoint.host, endpoint.port, timeout=timeout)
        if self._tls is None:
            try:
                self._tls = self._settings.tls()
            except OSError as wrong:
                raise RegistryUnreachable(f"its certificates can't be read: {_words(wrong)}", self.url) from wrong
        return http.client.HTTPSConnection(endpoint.host, endpoint.port, timeout=timeout, context=self._tls)

    def _take(self, endpoint: Endpoint) -> Connection | None:
        with self._lock:
            if self._process != os.getpid():
                self._idle, self._process = [], os.getpid()  # the parent's sockets: its answers would come here
            for number, (other, _) in enumerate(self._idle):
                if other == endpoint:
                    return self._idle.pop(number)[1]
        return None

    def _keep(self, endpoint: Endpoint, connection: Connection, response: http.client.HTTPResponse) -> None:
        with self._lock:
            if not response.will_close and len(self._idle) < IDLE_MAX:
                self._idle.append((endpoint, connection))
                return
        connection.close()


def _flag(value: Any) -> Any:
    return "true" if value is True else value


def _words(wrong: Exception) -> str:
    if isinstance(wrong, TimeoutError):
        return "no answer in time"
    if isinstance(wrong, OSError) and wrong.strerror:
        return wrong.strerror
    return str(wrong) or type(wrong).__name__


def _answer(endpoint: Endpoint, response: http.client.HTTPResponse, content: bytes) -> Any:
    try:
        answer = json.loads(content) if content else None
    except (ValueError, RecursionError):
        answer = None
    if 200 <= response.status < 300 and (answer is not None or not content):
        return answer
    code, words = response.status, response.reason or "no reason given"
    if isinstance(answer, dict):
        code = answer["error_code"] if isinstance(answer.get("error_code"), int) else code
        words = str(answer.get("message") or words)
    elif 200 <= response.status < 300:
        words = "an answer that is no JSON"
    error = RegistryError(code, words, str(endpoint))
    if response.status in PASSING:
        raise _Failed(words, error)
    raise error
