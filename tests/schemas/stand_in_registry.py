"""A registry's answers over HTTP, as far as serializers ask: it keeps texts and judges none of them."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from uuid import NAMESPACE_OID, uuid5

from moldau.schemas import formats
from moldau.schemas.model import ReferencedText, SchemaType

UNKNOWN_SUBJECT = (404, {"error_code": 40401, "message": "Subject not found."})
UNKNOWN_VERSION = (404, {"error_code": 40402, "message": "Version not found."})
UNKNOWN_SCHEMA = (404, {"error_code": 40403, "message": "Schema not found"})

Answer = tuple[int, Any]


class StandIn:
    """Subjects with their versions; `failing` are answers that come before anything is looked up."""

    def __init__(self) -> None:
        self.url = ""
        self.subjects: dict[str, list[int]] = {}
        self.schemas: list[dict[str, Any]] = []
        self.failing: list[int] = []
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        self.guids = True
        self.lock = threading.Lock()

    def answer(self, method: str, target: str, headers: dict[str, str], body: Any) -> Answer:
        split = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(split.query).items()}
        with self.lock:
            self.asked.append((method, target, headers))
            if self.failing:
                return self.failing.pop(0), {"error_code": 50001, "message": "not now"}
            match method, [unquote(part) for part in split.path.strip("/").split("/")]:
                case "GET", ["subjects"]:
                    return 200, sorted(self.subjects)
                case "GET", ["schemas", "ids", number]:
                    return self._of_id(int(number), query)
                case "GET", ["schemas", "guids", guid]:
                    found = [n for n in range(1, len(self.schemas) + 1) if self.guid(n) == guid]
                    return self._of_id(found[0], query) if found else UNKNOWN_SCHEMA
                case "POST", ["subjects", subject, "versions"]:
                    return self._register(subject, body)
                case "POST", ["subjects", subject]:
                    return self._lookup(subject, body)
                case "GET", ["subjects", subject, "versions"]:
                    ids = self.subjects.get(subject)
                    return UNKNOWN_SUBJECT if ids is None else (200, list(range(1, len(ids) + 1)))
                case "GET", ["subjects", subject, "versions", version]:
                    return self._of_version(subject, version, query)
                case "POST", ["compatibility", "subjects", _, "versions", *_]:
                    return 200, {"is_compatible": False, "messages": ["reason"]}
        return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}

    def guid(self, number: int) -> str:
        return str(uuid5(NAMESPACE_OID, str(number)))

    def _facts(self, number: int, query: dict[str, str]) -> dict[str, Any]:
        facts = dict(self.schemas[number - 1])
        if query.get("format") == "serialized":
            facts["schema"] = formats.parse(
                SchemaType(facts["schemaType"]), facts["schema"], self._texts(facts.get("references", ()))
            ).formatted("serialized")
        return {**facts, "guid": self.guid(number)} if self.guids else facts

    def _texts(self, references: Any) -> list[ReferencedText]:
        found: list[ReferencedText] = []
        for one in references:
            stored = self.schemas[self.subjects[one["subject"]][one["version"] - 1] - 1]
            found += [*self._texts(stored.get("references", ())), ReferencedText(one["name"], stored["schema"])]
        return found

    def _of_id(self, number: int, query: dict[str, str]) -> Answer:
        return (200, self._facts(number, query)) if 0 < number <= len(self.schemas) else UNKNOWN_SCHEMA

    def _of_version(self, subject: str, version: str, query: dict[str, str]) -> Answer:
        ids = self.subjects.get(subject)
        if ids is None:
            return UNKNOWN_SUBJECT
        number = len(ids) if version == "latest" else int(version)
        if not 0 < number <= len(ids):
            return UNKNOWN_VERSION
        return 200, {
            "subject": subject,
            "version": number,
            "id": ids[number - 1],
            **self._facts(ids[number - 1], query),
        }

    def _register(self, subject: str, body: Any) -> Answer:
        stored = {"schemaType": "AVRO", **{name: body[name] for name in body if body[name]}}
        if stored not in self.schemas:
            self.schemas.append(stored)
        number = self.schemas.index(stored) + 1
        ids = self.subjects.setdefault(subject, [])
        if number not in ids:
            ids.append(number)
        return 200, {"id": number, "version": ids.index(number) + 1, **self._facts(number, {})}

    def _lookup(self, subject: str, body: Any) -> Answer:
        ids = self.subjects.get(subject)
        if ids is None:
            return UNKNOWN_SUBJECT
        stored = {"schemaType": "AVRO", **{name: body[name] for name in body if body[name]}}
        for version, number in enumerate(ids, 1):
            if self.schemas[number - 1] == stored:
                return 200, {"subject": subject, "version": version, "id": number, **self._facts(number, {})}
        return UNKNOWN_SCHEMA


@contextmanager
def running_stand_in(tls: ssl.SSLContext | None = None) -> Iterator[StandIn]:
    registry = StandIn()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._reply(None)

        def do_POST(self) -> None:
            self._reply(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _reply(self, body: Any) -> None:
            status, answer = registry.answer(self.command, self.path, dict(self.headers), body)
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    registry.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
