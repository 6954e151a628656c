"""Two registries over https with users, as the guide starts them: whoever is asked takes a write to the leader."""

from __future__ import annotations

import base64
import json
import shlex
import ssl
import subprocess
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from moldau.web.logins import hashed
from tests.guides.code_blocks import blocks
from tests.registry.running import WAIT_S_MAX, RunningRegistry, running_registry

pytestmark = pytest.mark.xdist_group("registry")
PAGE = "docs/guides/schema-registry.md"
SCHEMA = json.dumps({"schema": '"string"'}).encode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the guide names; the certificate is its own authority."""
    found: Path = tmp_path_factory.mktemp("https")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-keyout", "server.key", "-out", "server.pem"]
    subprocess.run(command, check=True, capture_output=True, cwd=found)
    line = f"{hashed('secret')}"
    (found / "users").write_text(f"anna: {line}, admin\nbilling: {line}, read, write=billing-\n")
    name = uuid.uuid4().hex[:8]
    lines = [f"kafkastore.topic=_schemas-{name}", f"schema.registry.group.id=registry-{name}"]
    lines += [f"ssl.truststore.location={found}/server.pem", "ssl.truststore.type=PEM"]
    (found / "registry.properties").write_text("\n".join(lines))
    return found


@pytest.fixture(scope="module")
def two(bootstrap: str, folder: Path) -> Iterator[list[RunningRegistry]]:
    (said,) = (each for each in blocks(PAGE, "sh") if "--tls-certificate" in each)
    program, command, port, _number, *files = shlex.split(said)
    assert (program, command, port) == ("moldau", "registry", "--port")
    files = [each if each.startswith("--") else str(folder / each) for each in files]
    with ExitStack() as stack:
        arguments = (*files, "--config", str(folder / "registry.properties"))
        yield [stack.enter_context(running_registry(bootstrap, *arguments)) for _ in range(2)]


def ask(registry: RunningRegistry, folder: Path, path: str, login: str = "", body: bytes | None = None) -> int:
    request = urllib.request.Request(registry.url + path, body, {"Content-Type": "application/json"})
    if login:
        request.add_header("Authorization", f"Basic {base64.b64encode(login.encode()).decode()}")
    trusting = ssl.create_default_context(cafile=str(folder / "server.pem"))
    try:
        with urllib.request.urlopen(request, timeout=WAIT_S_MAX, context=trusting) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code


def test_each_judges_logins_and_takes_writes(two: list[RunningRegistry], folder: Path) -> None:
    for number, each in enumerate(two):
        assert each.url.startswith("https://")
        own = f"/subjects/billing-{number}/versions"
        assert ask(each, folder, own, body=SCHEMA) == 401
        assert ask(each, folder, own, "billing:guess", SCHEMA) == 401
        assert ask(each, folder, own, "billing:secret", SCHEMA) == 200
        assert ask(each, folder, f"/subjects/orders-{number}/versions", "billing:secret", SCHEMA) == 403
        assert ask(each, folder, f"/subjects/orders-{number}/versions", "anna:secret", SCHEMA) == 200
        assert ask(each, folder, own, "billing:secret") == 200
        assert ask(each, folder, "/health") == 200


def test_without_tls_there_is_no_answer(two: list[RunningRegistry]) -> None:
    plain = two[0].url.replace("https:", "http:")
    with pytest.raises(OSError, match=r"(?i)disconnected|reset|timed out|closed"):
        urllib.request.urlopen(plain, timeout=WAIT_S_MAX)
