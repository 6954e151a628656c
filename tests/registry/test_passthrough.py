"""Users of the cluster at the registry: it judges their passwords, and its ACLs what they may do to a topic's schemas.

On Moldau, and on Apache Kafka.
"""

from __future__ import annotations

import base64
import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

import moldau
from moldau.registry.rights import topic_of
from tests import apache_kafka
from tests.apache_kafka import ApacheKafka
from tests.registry.running import RunningRegistry, running_registry

pytestmark = pytest.mark.xdist_group("registry-rights")

Client: TypeAlias = Mapping[str, Any]

ADMIN, SECRET, GUESS = "admin", "a secret", "a guess"
OPERATIONS = {
    "stranger": (),
    "reader": (AclOperation.READ,),
    "writer": (AclOperation.WRITE,),
    "owner": (AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER_CONFIGS),
}
USERS = (*OPERATIONS, "operator", "visitor")
EVERYBODY = ("stranger", "reader", "writer", "owner", ADMIN)
READERS, WRITERS, OWNERS, ADMINS = (EVERYBODY[first:] for first in (1, 2, 3, 4))
SCHEMA = {"schema": '{"type": "record", "name": "Order", "fields": []}'}
LEVEL, MODE = {"compatibility": "FULL"}, {"mode": "READWRITE"}
ONE = "/subjects/{subject}/versions/{version}"

# Every route, with who may: the users have what OPERATIONS says on the topic `orders`, and nothing else.
ROUTES: tuple[tuple[str, str, tuple[str, ...], object], ...] = (
    ("GET", "/", EVERYBODY, None),
    ("POST", "/", EVERYBODY, {}),
    ("GET", "/schemas", EVERYBODY, None),
    ("GET", "/subjects", EVERYBODY, None),
    ("GET", "/contexts", EVERYBODY, None),
    ("GET", "/schemas/types", EVERYBODY, None),
    ("GET", "/v1/metadata/id", EVERYBODY, None),
    ("GET", "/v1/metadata/version", EVERYBODY, None),
    ("GET", "/v1/metadata/deployment", EVERYBODY, None),
    ("GET", "/schemas/ids/{id}", READERS, None),
    ("GET", "/schemas/ids/{id}/schema", READERS, None),
    ("GET", "/schemas/ids/{id}/subjects", READERS, None),
    ("GET", "/schemas/ids/{id}/versions", READERS, None),
    ("GET", "/schemas/guids/{guid}", READERS, None),
    ("GET", "/schemas/guids/{guid}/ids", READERS, None),
    ("GET", "/subjects/{subject}/versions", READERS, None),
    ("GET", ONE, READERS, None),
    ("GET", f"{ONE}/schema", READERS, None),
    ("GET", f"{ONE}/referencedby", READERS, None),
    ("GET", "/subjects/{subject}/metadata", READERS, None),
    ("POST", "/subjects/{subject}", READERS, SCHEMA),
    ("POST", "/subjects/{subject}/versions", WRITERS, SCHEMA),
    ("POST", f"{ONE}/tags", WRITERS, {"metadata": {"properties": {"a": "b"}}}),
    ("POST", "/compatibility/subjects/{subject}/versions", WRITERS, SCHEMA),
    ("POST", f"/compatibility{ONE}", WRITERS, SCHEMA),
    ("PUT", "/config/{subject}", OWNERS, LEVEL),
    ("GET", "/config/{subject}", READERS, None),
    ("DELETE", "/config/{subject}", OWNERS, None),
    ("PUT", "/mode/{subject}", OWNERS, MODE),
    ("GET", "/mode/{subject}", READERS, None),
    ("DELETE", "/mode/{subject}", OWNERS, None),
    ("PUT", "/config", ADMINS, LEVEL),
    ("GET", "/config", ADMINS, None),
    ("DELETE", "/config", ADMINS, None),
    ("PUT", "/mode", ADMINS, MODE),
    ("GET", "/mode", ADMINS, None),
    ("DELETE", "/mode", ADMINS, None),
    ("DELETE", "/contexts/{context}", ADMINS, None),
    ("DELETE", ONE, OWNERS, None),
    ("DELETE", "/subjects/{subject}", OWNERS, None),
)


@dataclass(frozen=True, slots=True)
class Secured:
    client: Client
    """An administrator's."""
    admin: AdminClient

    def allow(self, user: str, operation: AclOperation, name: str = "orders", *, is_cluster: bool = False) -> None:
        for future in self.admin.create_acls([_binding(AclBinding, user, operation, name, is_cluster)]).values():
            future.result(30)

    def take_back(self, user: str, operation: AclOperation, name: str = "orders") -> None:
        for future in self.admin.delete_acls([_binding(AclBindingFilter, user, operation, name, False)]).values():
            assert future.result(30)


def _binding(kind: Callable[..., Any], user: str, operation: AclOperation, name: str, is_cluster: bool) -> Any:
    place = (ResourceType.BROKER, "kafka-cluster") if is_cluster else (ResourceType.TOPIC, name)
    pattern = ResourcePatternType.LITERAL
    return kind(*place, pattern, f"User:{user}", "*", operation, AclPermissionType.ALLOW)


@contextmanager
def running(kind: str) -> Iterator[Secured]:
    if kind == "moldau":
        with moldau.run(secure=True) as broker:
            for user in USERS:
                broker.add_user(user, SECRET)
            yield Secured(broker.clients.confluent, AdminClient(broker.clients.confluent))
        return
    passwords = dict.fromkeys((ADMIN, *USERS), SECRET)
    with ApacheKafka(passwords=passwords, properties={"super.users": f"User:ANONYMOUS;User:{ADMIN}"}) as broker:
        login = {"sasl.mechanism": "PLAIN", "sasl.username": ADMIN, "sasl.password": SECRET}
        client = {"bootstrap.servers": broker.secured_bootstrap, "security.protocol": "SASL_PLAINTEXT", **login}
        yield Secured(client, AdminClient(client))


@pytest.fixture(scope="module", params=["moldau", "apache"])
def secured(request: pytest.FixtureRequest) -> Iterator[Secured]:
    if request.param == "apache" and not apache_kafka.available():
        pytest.skip("Apache Kafka is not here")
    with running(request.param) as found:
        for user, operations in OPERATIONS.items():
            for each in operations:
                found.allow(user, each)
        found.allow("visitor", AclOperation.DESCRIBE, is_cluster=True)
        found.allow("operator", AclOperation.DESCRIBE, is_cluster=True)
        found.allow("operator", AclOperation.ALTER_CONFIGS, is_cluster=True)
        yield found


@pytest.fixture(scope="module")
def two(secured: Secured, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[RunningRegistry]]:
    """The first one leads."""
    name = uuid.uuid4().hex[:8]
    config = tmp_path_factory.mktemp("registry") / "registry.properties"
    keys = (f"kafkastore.topic=_schemas-{name}", f"schema.registry.group.id=registry-{name}")
    config.write_text("\n".join((*keys, "kafkastore.topic.replication.factor=1")))
    follower = Path(f"{config}-2")
    follower.write_text(config.read_text() + "\nleader.eligibility=false")
    pairs = [word for key, each in secured.client.items() for word in ("-X", f"{key}={each}")]
    said = (secured.client["bootstrap.servers"], "--authentication", "passthrough", *pairs, "--config")
    with running_registry(*said, str(config)) as one, running_registry(*said, str(follower)) as other:
        yield [one, other]


@pytest.fixture(scope="module")
def registry(two: list[RunningRegistry]) -> RunningRegistry:
    return two[0]


@pytest.fixture(scope="module")
def admin(secured: Secured) -> tuple[str, str]:
    return secured.client["sasl.username"], secured.client["sasl.password"]


def basic(user: str, password: str = SECRET) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def ask(
    registry: RunningRegistry, login: str | tuple[str, str], method: str, path: str, body: object = None
) -> tuple[int, Any]:
    user, password = (login, SECRET) if isinstance(login, str) else login
    return registry.ask(method, path, body, Authorization=basic(user, password))


def register(registry: RunningRegistry, login: str | tuple[str, str], subject: str, name: str = "Order") -> int:
    schema = {"schema": json.dumps({"type": "record", "name": name, "fields": []})}
    return ask(registry, login, "POST", f"/subjects/{subject}/versions", schema)[0]


def eventually(is_so: Callable[[], bool], within_s: float = 30.0) -> None:
    deadline_s = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < deadline_s, f"not within {within_s} s"
        time.sleep(0.1)


@pytest.mark.parametrize("subject", ["orders-value", ":.staging:orders-key"])
def test_the_clusters_acls_judge_every_route(registry: RunningRegistry, admin: tuple[str, str], subject: str) -> None:
    assert register(registry, admin, subject) == 200
    _, first = ask(registry, admin, "GET", f"/subjects/{subject}/versions/1")
    given = {"subject": subject, "version": "1", "id": first["id"], "guid": first["guid"], "context": ".staging"}
    told, expected = {}, {}
    for method, path, users, body in ROUTES:
        query = f"?subject={subject}" if "{id}" in path else ""
        for user in EVERYBODY:
            login = admin if user == ADMIN else user
            status, answer = ask(registry, login, method, path.format(**given) + query, body)
            assert status < 500, (method, path, user, answer)
            assert status != 403 or answer["error_code"] == 40301
            told[method, path, user] = status not in (401, 403)
            expected[method, path, user] = user in users
    assert {place: told[place] for place in told if told[place] != expected[place]} == {}


def test_no_route_answers_without_a_login(registry: RunningRegistry, admin: tuple[str, str]) -> None:
    paths = ask(registry, admin, "GET", "/openapi.json")[1]["paths"]
    own = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    own -= {("GET", "/health"), ("GET", "/ready"), ("GET", "/metrics"), ("GET", "/openapi.json")}
    assert own == {(method, path) for method, path, _, _ in ROUTES}
    for method, path in sorted(own | {("GET", "/metrics"), ("GET", "/openapi.json"), ("GET", "/nowhere")}):
        for headers in ({}, {"Authorization": "Bearer x"}):
            status, answer = registry.ask(method, path, **headers)
            assert (status, answer["error_code"]) == (401, 40101), (method, path)
    for user, password in (("reader", GUESS), ("nobody", SECRET), ("reader", ""), ("", "")):
        assert ask(registry, (user, password), "GET", "/subjects")[0] == 401
    assert registry.ask("GET", "/health")[0] == 200
    assert registry.ask("GET", "/ready")[0] == 200


def test_lists_have_what_may_be_read(registry: RunningRegistry, admin: tuple[str, str]) -> None:
    for subject in ("orders-key", ":.test:orders-value", "others-value", ":.secret:others-value", "com.acme.Order"):
        assert register(registry, admin, subject) == 200
    mine = {"orders-key", ":.test:orders-value"}
    for user, expected in (("stranger", set()), ("reader", mine), ("writer", mine), ("visitor", {"com.acme.Order"})):
        subjects = set(ask(registry, user, "GET", "/subjects")[1])
        assert subjects & {*mine, "others-value", "com.acme.Order"} == expected
        assert {each["subject"] for each in ask(registry, user, "GET", "/schemas")[1]} == subjects
    assert ".secret" not in ask(registry, "reader", "GET", "/contexts")[1]
    assert ".test" in ask(registry, "reader", "GET", "/contexts")[1]
    assert ".secret" in ask(registry, "visitor", "GET", "/contexts")[1]
    schema_id = ask(registry, admin, "GET", "/subjects/others-value/versions/1")[1]["id"]
    subjects = ask(registry, "reader", "GET", f"/schemas/ids/{schema_id}/subjects")[1]
    assert "orders-key" in subjects
    assert "others-value" not in subjects


def test_rights_on_the_cluster_are_for_what_is_no_topics(registry: RunningRegistry, admin: tuple[str, str]) -> None:
    assert register(registry, admin, "com.acme.Parcel") == 200
    for path in ("/config", "/mode", "/subjects/com.acme.Parcel/versions", "/config/:.any:?defaultToGlobal=true"):
        told = [ask(registry, user, "GET", path)[0] for user in ("owner", "visitor", "operator")]
        assert told == [403, 200, 200], path
    for method, path, body in (
        ("POST", "/subjects/com.acme.Parcel/versions", SCHEMA),
        ("PUT", "/config", LEVEL),
        ("DELETE", "/config", None),
        ("PUT", "/mode", MODE),
        ("PUT", "/config/:.any:", LEVEL),
        ("DELETE", "/subjects/com.acme.Parcel", None),
    ):
        told = [ask(registry, user, method, path, body)[0] for user in ("owner", "visitor", "operator")]
        assert told == [403, 403, 200], (method, path)


def test_whoever_refers_to_a_schema_may_read_it(registry: RunningRegistry, admin: tuple[str, str]) -> None:
    assert register(registry, admin, "hidden-value", "Hidden") == 200
    assert register(registry, admin, "orders-part-value", "Part") == 200
    fields = [{"name": "it", "type": "Hidden"}]
    body = {
        "schema": json.dumps({"type": "record", "name": "Whole", "fields": fields}),
        "references": [{"name": "Hidden", "subject": "hidden-value", "version": 1}],
    }
    for path in ("/subjects/orders-value/versions", "/subjects/orders-value"):
        assert ask(registry, "writer", "POST", path, body)[0] == 403


def test_a_right_counts_for_a_topic_that_is_not_there_yet(secured: Secured, registry: RunningRegistry) -> None:
    secured.allow("writer", AclOperation.WRITE, "later")
    eventually(lambda: register(registry, "writer", "later-value") == 200)


def test_a_right_that_comes_or_goes_counts_soon(secured: Secured, registry: RunningRegistry) -> None:
    def status() -> int:
        return ask(registry, "stranger", "GET", "/subjects/others-value/versions")[0]

    assert status() == 403
    secured.allow("stranger", AclOperation.DESCRIBE, "others")
    eventually(lambda: status() == 200)
    secured.take_back("stranger", AclOperation.DESCRIBE, "others")
    eventually(lambda: status() == 403)


def test_the_leader_judges_what_is_sent_on_to_it(two: list[RunningRegistry]) -> None:
    assert [register(each, "writer", ":.sent:orders-value") for each in two] == [200, 200]
    assert [register(each, "reader", ":.sent:orders-value") for each in two] == [403, 403]
    assert [register(each, ("writer", GUESS), ":.sent:orders-value") for each in two] == [401, 401]


@pytest.mark.parametrize(
    ("subject", "topic"),
    [
        ("orders-key", "orders"),
        (":.staging:orders-value", "orders"),
        ("a-key-value", "a-key"),
        ("orders", None),
        ("orders-com.acme.Order", None),
        (":.staging:", None),
        (":.__GLOBAL:orders-value", None),
        ("", None),
        ("-value", None),
        ("..-value", None),
        ("a b-value", None),
        ("x" * 250 + "-value", None),
    ],
)
def test_a_subject_is_its_topics(subject: str, topic: str | None) -> None:
    assert topic_of(subject) == topic


def test_confluents_client_logs_in_as_a_user(registry: RunningRegistry) -> None:
    subject, schema = ":.client:orders-value", Schema(SCHEMA["schema"], "AVRO")

    def client(user: str, password: str = SECRET) -> SchemaRegistryClient:
        return SchemaRegistryClient({"url": registry.url, "basic.auth.user.info": f"{user}:{password}"})

    with client("writer") as writer, client("reader") as reader:
        schema_id = writer.register_schema(subject, schema)
        assert reader.get_latest_version(subject).schema_id == schema_id
    for user, password, code in (("reader", SECRET, 40301), ("stranger", SECRET, 40301), ("writer", GUESS, 40101)):
        with client(user, password) as refused, pytest.raises(SchemaRegistryError) as why:
            refused.register_schema(subject, schema)
        assert why.value.error_code == code
