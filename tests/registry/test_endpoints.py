"""What endpoints answer, and how they refuse, over HTTP."""

from __future__ import annotations

import urllib.request
from typing import Any
from urllib.parse import quote

import pytest

from tests.registry.running import WAIT_S_MAX, RunningRegistry

pytestmark = pytest.mark.xdist_group("registry")

INT, LONG, TEXT = ({"schema": f'"{name}"'} for name in ("int", "long", "string"))


def test_answers_have_the_registrys_media_type(registry: RunningRegistry) -> None:
    request = urllib.request.Request(f"{registry.url}/subjects", headers={"Accept": "*/*"})
    with urllib.request.urlopen(request, timeout=WAIT_S_MAX) as answer:
        assert answer.headers["Content-Type"] == "application/vnd.schemaregistry.v1+json"


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("GET", "/subjects/none/versions", None, 404, 40_401),
        ("GET", "/subjects/none/versions/1", None, 404, 40_401),
        ("GET", "/subjects/none/versions/0", None, 422, 42_202),
        ("GET", "/subjects/none/versions/first", None, 422, 42_202),
        ("GET", "/schemas/ids/999999", None, 404, 40_403),
        ("GET", "/schemas/ids/x", None, 404, 404),
        ("GET", f"/schemas/ids/{'9' * 5_000}", None, 404, 404),
        ("GET", "/schemas/guids/x", None, 404, 40_403),
        ("POST", "/subjects/none", INT, 404, 40_401),
        ("POST", "/subjects/a/versions", {"schema": "{"}, 422, 42_201),
        ("POST", "/subjects/a/versions", {"schema": ""}, 422, 42_201),
        ("POST", "/subjects/a/versions", [], 422, 422),
        ("POST", "/subjects/__GLOBAL/versions", INT, 422, 42_208),
        ("POST", "/subjects/a/versions", {**INT, "id": 7}, 422, 42_205),
        ("DELETE", "/subjects/none", None, 404, 40_401),
        ("PUT", "/config", {"compatibility": "SOME"}, 422, 42_203),
        ("PUT", "/mode", {"mode": "SOME"}, 422, 42_204),
        ("GET", "/config/none", None, 404, 40_408),
        ("GET", "/mode/none", None, 404, 40_409),
        ("DELETE", "/config/none", None, 404, 40_401),
        ("DELETE", "/mode/none", None, 404, 40_401),
        ("DELETE", "/contexts/none", None, 404, 40_401),
        ("PATCH", "/subjects", None, 405, 405),
        ("GET", "/nothing", None, 404, 404),
        ("GET", "/subjects?limit=x", None, 404, 404),
    ],
)
def test_refusals(registry: RunningRegistry, method: str, path: str, body: Any, status: int, code: int) -> None:
    found, answer = registry.ask(method, path, body)
    assert (found, answer["error_code"]) == (status, code)


@pytest.mark.parametrize(("headers", "status"), [({"Accept": "text/html"}, 406), ({"Content-Type": "text/plain"}, 415)])
def test_media_types_that_are_refused(registry: RunningRegistry, headers: dict[str, str], status: int) -> None:
    assert registry.ask("POST", "/subjects/a", INT, **headers)[0] == status


def test_a_name_with_a_slash(registry: RunningRegistry, subject: str) -> None:
    path = f"/subjects/{quote(subject + '/ä b', safe='')}/versions"
    assert registry.ask("POST", path, INT)[0] == 200
    assert f"{subject}/ä b" in registry.ask("GET", "/subjects")[1]
    assert registry.ask("GET", path) == (200, [1])


def test_soft_and_permanent_deletion(registry: RunningRegistry, subject: str) -> None:
    path = f"/subjects/{subject}"
    registry.ask("POST", f"{path}/versions", INT)
    assert registry.ask("DELETE", f"{path}?permanent=true")[1]["error_code"] == 40_405
    assert registry.ask("DELETE", f"{path}/versions/1?permanent=true")[1]["error_code"] == 40_407
    assert registry.ask("DELETE", f"{path}/versions/latest") == (200, 1)
    assert registry.ask("DELETE", path)[1]["error_code"] == 40_404
    assert subject in registry.ask("GET", "/subjects?deletedOnly=true")[1]
    assert subject not in registry.ask("GET", "/subjects")[1]
    assert registry.ask("GET", f"{path}/versions?deleted=true") == (200, [1])
    assert registry.ask("DELETE", f"{path}?permanent=true") == (200, [1])
    assert registry.ask("GET", f"{path}/versions?deleted=true")[0] == 404


def test_a_context_may_begin_the_path(registry: RunningRegistry, subject: str) -> None:
    context = f".c{subject[-8:]}"
    below, name = f"/contexts/{context}", f":{context}:{subject}"
    assert registry.ask("POST", f"{below}/subjects/{subject}/versions", INT)[1]["id"] == 1
    assert registry.ask("GET", f"{below}/subjects") == (200, [name])
    assert registry.ask("GET", f"{below}/subjects/{subject}/versions/1")[1]["subject"] == name
    assert registry.ask("GET", f"{below}/subjects/{quote(name, safe='')}/versions") == (200, [1])
    assert registry.ask("GET", f"{below}/schemas/ids/1/subjects") == (200, [name])
    assert [each["subject"] for each in registry.ask("GET", f"{below}/schemas")[1]] == [name]
    assert registry.ask("PUT", f"{below}/config", {"compatibility": "NONE"})[0] == 200
    assert registry.ask("GET", f"/config/:{context}:")[1] == {"compatibilityLevel": "NONE"}
    assert registry.ask("GET", "/contexts/a:b/subjects")[0] == 400
    assert registry.ask("GET", f"{below}/contexts")[0] == 200


def test_contexts_have_ids_of_their_own(registry: RunningRegistry, subject: str) -> None:
    context = f".c{subject[-8:]}"
    name = f":{context}:{subject}"
    assert registry.ask("POST", f"/subjects/{name}/versions", TEXT)[1]["id"] == 1
    assert context in registry.ask("GET", "/contexts")[1]
    assert registry.ask("GET", f"/schemas/ids/1?subject={name}")[1]["schema"] == '"string"'
    assert registry.ask("GET", f"/subjects?subjectPrefix=:{context}:") == (200, [name])
    assert name in registry.ask("GET", f"/subjects?subjectPrefix=:*:{subject}")[1]
    assert registry.ask("DELETE", f"/contexts/:{context}:")[1]["error_code"] == 42_211
    for permanent in ("false", "true"):
        registry.ask("DELETE", f"/subjects/{name}?permanent={permanent}")
    assert registry.ask("DELETE", f"/contexts/:{context}:")[0] == 204
    assert context not in registry.ask("GET", "/contexts")[1]


def test_what_refers_protects(registry: RunningRegistry, subject: str) -> None:
    record = '{"type":"record","name":"R","fields":[]}'
    registry.ask("POST", f"/subjects/{subject}/versions", {"schema": record})
    user = {"schema": '{"type":"record","name":"U","fields":[{"name":"r","type":"R"}]}'}
    user["references"] = [{"name": "R", "subject": subject, "version": 1}]  # type: ignore[assignment]
    status, answer = registry.ask("POST", f"/subjects/{subject}-user/versions", user)
    assert status == 200
    assert registry.ask("GET", f"/subjects/{subject}/versions/1/referencedby") == (200, [answer["id"]])
    assert registry.ask("DELETE", f"/subjects/{subject}")[1]["error_code"] == 42_206
    missing = {**user, "references": [{"name": "R", "subject": subject, "version": 9}]}
    assert registry.ask("POST", f"/subjects/{subject}-user/versions", missing)[1]["error_code"] == 42_201


def test_a_text_with_all_in_it_is_the_one_that_refers(registry: RunningRegistry, subject: str) -> None:
    """What Java's classes send of schemas that were registered one by one."""
    money = '{"type":"record","name":"Money","namespace":"shop","fields":[{"name":"cents","type":"long"}]}'
    fields = '[{"name":"sum","type":%s},{"name":"tip","type":"Money"}]'
    order = f'{{"type":"record","name":"Order","namespace":"shop","fields":{fields}}}'
    registry.ask("POST", f"/subjects/{subject}-money/versions", {"schema": money})
    referring = {
        "schema": order % '"Money"',
        "references": [{"name": "shop.Money", "subject": f"{subject}-money", "version": 1}],
    }
    given = registry.ask("POST", f"/subjects/{subject}/versions", referring)[1]
    whole = {"schema": order % money}
    status, found = registry.ask("POST", f"/subjects/{subject}", whole)
    assert (status, found["id"], found["references"]) == (200, given["id"], referring["references"])
    assert registry.ask("POST", f"/subjects/{subject}/versions", whole) == (200, given)
    assert registry.ask("GET", f"/subjects/{subject}/versions") == (200, [1])
    other = {"schema": order % money.replace("long", "int")}
    assert registry.ask("POST", f"/subjects/{subject}", other)[1]["error_code"] == 40_403


def test_explanations(registry: RunningRegistry, subject: str) -> None:
    registry.ask("POST", f"/subjects/{subject}/versions", INT)
    path = f"/compatibility/subjects/{subject}/versions"
    assert registry.ask("POST", f"{path}/latest", LONG) == (200, {"is_compatible": True})
    status, answer = registry.ask("POST", f"{path}/latest?verbose=true", TEXT)
    assert (status, answer["is_compatible"]) == (200, False)
    assert "TYPE_MISMATCH" in answer["messages"][0]
    assert registry.ask("POST", f"{path}?verbose=true", TEXT)[1]["is_compatible"] is False
    assert registry.ask("POST", f"{path}/7", TEXT)[1]["error_code"] == 40_402
    assert registry.ask("POST", f"{path}/latest", {"schema": "{"})[1]["error_code"] == 42_201
    assert registry.ask("POST", f"{path}/latest?verbose=true", {"schema": "{"})[1]["is_compatible"] is False


def test_an_alias_is_read_as_its_subject(registry: RunningRegistry, subject: str) -> None:
    registry.ask("POST", f"/subjects/{subject}/versions", INT)
    registry.ask("PUT", f"/config/{subject}-alias", {"alias": subject})
    assert registry.ask("GET", f"/subjects/{subject}-alias/versions") == (200, [1])


def test_modes_of_a_subject(registry: RunningRegistry, subject: str) -> None:
    assert registry.ask("PUT", f"/mode/{subject}", {"mode": "READONLY"}) == (200, {"mode": "READONLY"})
    assert registry.ask("POST", f"/subjects/{subject}/versions", INT)[1]["error_code"] == 42_205
    assert registry.ask("GET", f"/mode/{subject}") == (200, {"mode": "READONLY"})
    assert registry.ask("DELETE", f"/mode/{subject}") == (200, {"mode": "READONLY"})
    assert registry.ask("PUT", f"/mode/{subject}", {"mode": "IMPORT"})[0] == 200
    imported = {**TEXT, "id": 1_000_000 + int(subject[-5:], 16), "version": 5}
    assert registry.ask("POST", f"/subjects/{subject}/versions", imported)[1]["id"] == imported["id"]
    assert registry.ask("GET", f"/subjects/{subject}/versions") == (200, [5])


def test_tags_of_a_version(registry: RunningRegistry, subject: str) -> None:
    registry.ask("POST", f"/subjects/{subject}/versions", INT)
    tagged = {"metadata": {"properties": {"owner": "me"}}}
    assert registry.ask("POST", f"/subjects/{subject}/versions/1/tags", tagged)[1]["version"] == 2
    assert registry.ask("GET", f"/subjects/{subject}/metadata?key=owner&value=me")[1]["version"] == 2


def test_operation(registry: RunningRegistry) -> None:
    assert registry.ask("GET", "/ready")[0] == 200
    assert registry.ask("GET", "/health")[0] == 200
    with urllib.request.urlopen(f"{registry.url}/metrics", timeout=WAIT_S_MAX) as answer:
        assert b"moldau_registry_is_leader 1" in answer.read()
