"""What each endpoint wants of a login. An endpoint that is missing here has nobody who thought about it."""

from __future__ import annotations

import base64
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.web.logins import hashed
from tests.registry.running import RunningRegistry, running_registry

pytestmark = pytest.mark.xdist_group("registry")

PIN = '{"type":"record","name":"Pin","fields":[{"name":"digits","type":"int"}]}'
CARD = '{"type":"record","name":"Card","fields":[{"name":"pin","type":"Pin"}]}'
BODY = {"schema": PIN}
USERS = {
    "root": "admin", "writer": "write", "reader": "read",
    "team": "write=cards-", "guest": "read=cards-", "stranger": "read=others-",
}  # fmt: skip
VERSION = "/subjects/{subject}/versions/{version}"

# What is asked, of pins-value and its contents: the least of the roles that may, or ANYBODY with a login.
ANYBODY = "stranger"
WANTED: dict[tuple[str, str], tuple[str, Any]] = {
    ("GET", "/schemas"): (ANYBODY, None),
    ("GET", "/schemas/types"): (ANYBODY, None),
    ("GET", "/schemas/ids/{id}"): ("reader", None),
    ("GET", "/schemas/ids/{id}/schema"): ("reader", None),
    ("GET", "/schemas/ids/{id}/subjects"): ("reader", None),
    ("GET", "/schemas/ids/{id}/versions"): ("reader", None),
    ("GET", "/schemas/guids/{guid}"): ("reader", None),
    ("GET", "/schemas/guids/{guid}/ids"): ("reader", None),
    ("GET", "/subjects"): (ANYBODY, None),
    ("GET", "/subjects/{subject}/versions"): ("reader", None),
    ("GET", VERSION): ("reader", None),
    ("GET", f"{VERSION}/schema"): ("reader", None),
    ("GET", f"{VERSION}/referencedby"): ("reader", None),
    ("GET", "/subjects/{subject}/metadata"): ("reader", None),
    ("POST", "/subjects/{subject}/versions"): ("writer", BODY),
    ("POST", "/subjects/{subject}"): ("reader", BODY),
    ("POST", f"{VERSION}/tags"): ("writer", {}),
    ("POST", "/compatibility/subjects/{subject}/versions/{version}"): ("reader", BODY),
    ("POST", "/compatibility/subjects/{subject}/versions"): ("reader", BODY),
    ("GET", "/config"): ("reader", None),
    ("PUT", "/config"): ("root", {"compatibility": "FULL"}),
    ("DELETE", "/config"): ("root", None),
    ("GET", "/config/{subject}"): ("reader", None),
    ("PUT", "/config/{subject}"): ("writer", {"compatibility": "FULL"}),
    ("DELETE", "/config/{subject}"): ("writer", None),
    ("GET", "/mode"): ("reader", None),
    ("PUT", "/mode"): ("root", {"mode": "READWRITE"}),
    ("DELETE", "/mode"): ("root", None),
    ("GET", "/mode/{subject}"): ("reader", None),
    ("PUT", "/mode/{subject}"): ("root", {"mode": "READWRITE"}),
    ("DELETE", "/mode/{subject}"): ("root", None),
    ("GET", "/contexts"): (ANYBODY, None),
    ("DELETE", "/contexts/{context}"): ("root", None),
    ("GET", "/v1/metadata/id"): (ANYBODY, None),
    ("GET", "/v1/metadata/version"): (ANYBODY, None),
    ("GET", "/v1/metadata/deployment"): (ANYBODY, None),
    ("GET", "/"): (ANYBODY, None),
    ("POST", "/"): (ANYBODY, None),
    # Last, since they take away what the others ask for.
    ("DELETE", VERSION): ("writer", None),
    ("DELETE", "/subjects/{subject}"): ("writer", None),
}
LADDER = ("stranger", "reader", "writer", "root")


@pytest.fixture(scope="module")
def secured(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRegistry]:
    users: Path = tmp_path_factory.mktemp("users") / "users"
    password = hashed("secret")
    users.write_text("".join(f"{name}: {password}, {role}\n" for name, role in USERS.items()))
    with running_registry(bootstrap, "--topic", f"_schemas-{uuid.uuid4().hex[:8]}", "--users", str(users)) as found:
        yield found


def ask(registry: RunningRegistry, user: str, method: str, path: str, body: object = None) -> tuple[int, Any]:
    pair = base64.b64encode(f"{user}:secret".encode()).decode()
    return registry.ask(method, path, body, Authorization=f"Basic {pair}")


def test_every_endpoint_wants_its_right(secured: RunningRegistry) -> None:
    documented = ask(secured, "root", "GET", "/openapi.json")[1]["paths"]
    assert {(method.upper(), path) for path, methods in documented.items() for method in methods} == WANTED.keys()
    registered = ask(secured, "root", "POST", "/subjects/pins-value/versions", BODY)[1]
    values = {**registered, "subject": "pins-value", "version": "1", "context": ".none"}
    for (method, path), (least, body) in WANTED.items():
        asked = re.sub(r"{(\w+)}", lambda found: str(values[found[1]]), path)
        assert secured.ask(method, asked, body)[0] == 401, (method, path)
        for user in LADDER:
            status, answer = ask(secured, user, method, asked, body)
            is_allowed = LADDER.index(user) >= LADDER.index(least)
            assert (status != 403) == is_allowed, (user, method, path, status, answer)
            if path in {"/schemas", "/subjects"}:
                assert bool(answer) == (user != "stranger"), "lists leave out what may not be read"


@pytest.mark.parametrize("path", ["/config/:.__GLOBAL:", "/contexts/.__GLOBAL/config", "/config/:.__GLOBAL:any"])
def test_what_counts_for_all_contexts_is_the_administrators(secured: RunningRegistry, path: str) -> None:
    assert ask(secured, "writer", "PUT", path, {"compatibility": "NONE"})[0] == 403
    assert ask(secured, "writer", "DELETE", path)[0] == 403
    assert ask(secured, "root", "PUT", path, {"compatibility": "BACKWARD"})[0] == 200


def test_a_resolved_text_has_only_what_may_be_read(secured: RunningRegistry) -> None:
    ask(secured, "root", "POST", "/subjects/digits-value/versions", BODY)
    body = {"schema": CARD, "references": [{"name": "Pin", "subject": "digits-value", "version": 1}]}
    assert ask(secured, "team", "POST", "/subjects/cards-value/versions", body)[0] == 403
    assert ask(secured, "root", "POST", "/subjects/cards-value/versions", body)[0] == 200
    path = "/subjects/cards-value/versions/1"
    assert ask(secured, "guest", "GET", path)[0] == 200
    assert ask(secured, "guest", "GET", f"{path}?format=resolved")[0] == 403
    assert "digits" in ask(secured, "reader", "GET", f"{path}?format=resolved")[1]["schema"]
