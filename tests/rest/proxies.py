"""A proxy in a process of its own, and how tests ask it."""

from __future__ import annotations

import base64
import http.client
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

T = TypeVar("T")

WAIT_S_MAX = 30.0
PAUSE_S = 0.05
BINARY, JSON_V2 = "application/vnd.kafka.binary.v2+json", "application/vnd.kafka.json.v2+json"
V2, JSON = "application/vnd.kafka.v2+json", "application/json"


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(each) for each in self.content.splitlines() if each.strip()]

    @property
    def code(self) -> int:
        """Of an error."""
        found: int = self.json["error_code"]
        assert self.json["message"], "an error says why"
        return found


@dataclass(slots=True)
class Proxy:
    url: str
    bootstrap: str
    process: subprocess.Popen[bytes]
    login: tuple[str, str] | None = None
    _cluster: str = field(default="", init=False)

    @property
    def address(self) -> tuple[str, int]:
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        assert parts.port is not None
        return parts.hostname, parts.port

    @property
    def cluster(self) -> str:
        """The path of the cluster."""
        if not self._cluster:
            self._cluster = f"/v3/clusters/{self.get('/v3/clusters').json['data'][0]['cluster_id']}"
        return self._cluster

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        kind: str = JSON,
        accept: str | None = None,
        login: tuple[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        connection = http.client.HTTPConnection(*self.address, timeout=WAIT_S_MAX)
        content = body if body is None or isinstance(body, bytes | str) else json.dumps(body)
        sent = {**({} if body is None else {"Content-Type": kind}), **({"Accept": accept} if accept else {})}
        login = login or self.login
        if login is not None:
            sent["Authorization"] = basic(*login)
        try:
            connection.request(method, path, content, {**sent, **(headers or {})})
            answer = connection.getresponse()
            return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def get(self, path: str, **more: Any) -> Answer:
        return self.ask("GET", path, **more)

    def post(self, path: str, body: Any = None, **more: Any) -> Answer:
        return self.ask("POST", path, body, **more)

    def metric(self, name: str) -> float:
        lines = self.get("/metrics").content.decode().splitlines()
        return float(next(each for each in lines if each.startswith(f"{name} ")).split()[1])

    def create_topic(self, name: str, *, partitions: int = 1, **configs: str) -> str:
        entries = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
        wanted = {"topic_name": name, "partitions_count": partitions, "configs": entries}
        answer = self.post(f"{self.cluster}/topics", wanted)
        assert answer.status == 201, answer.content
        eventually(lambda: self.get(f"{self.cluster}/topics/{name}").status == 200)
        return f"{self.cluster}/topics/{name}"

    def produce(self, topic: str, values: Sequence[object], *, partition: int | None = None) -> None:
        path = f"/topics/{topic}" + ("" if partition is None else f"/partitions/{partition}")
        answer = self.post(path, {"records": [{"value": each} for each in values]}, kind=JSON_V2)
        assert answer.status == 200, answer.content
        assert all(each["error_code"] is None for each in answer.json["offsets"])


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def eventually(look: Callable[[], T], *, within_s: float = WAIT_S_MAX) -> T:
    """What it answers first that counts as true."""
    deadline_s = time.monotonic() + within_s
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < deadline_s, f"not within {within_s} s: {found!r}"
        time.sleep(PAUSE_S)


@contextmanager
def running_proxy(
    bootstrap: str,
    *arguments: str,
    properties: Mapping[str, object] | None = None,
    login: tuple[str, str] | None = None,
) -> Iterator[Proxy]:
    """`properties` are those of kafka-rest.properties."""
    with tempfile.TemporaryDirectory() as folder:
        file, ready = Path(folder, "kafka-rest.properties"), Path(folder, "ready.json")
        file.write_text("".join(f"{key}={value}\n" for key, value in (properties or {}).items()))
        command = [sys.executable, "-P", "-m", "moldau", "rest", "-b", bootstrap, "--port", "0", "--host", "127.0.0.1"]
        command += ["--config", str(file), "--ready-file", str(ready), "--stop-with-stdin", *arguments]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=folder
        )
        told: list[bytes] = []
        assert process.stderr is not None
        reading = threading.Thread(target=lambda: told.extend(process.stderr or ()), daemon=True)
        reading.start()
        try:
            eventually(lambda: ready.exists() or process.poll() is not None)
            assert ready.exists(), b"".join(told).decode()
            yield Proxy(json.loads(ready.read_text())["url"], bootstrap, process, login)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(WAIT_S_MAX)
            reading.join()
            process.stderr.close()
        assert not [each for each in told if b"Traceback" in each], b"".join(told).decode()
