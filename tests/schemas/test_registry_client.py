"""The client of a registry: where it asks, what it keeps, and what it says when it fails."""

from __future__ import annotations

import base64
import socket
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest

from moldau.schemas.model import InvalidSchema, Reference, SchemaType
from moldau.schemas.registry_client import RegistryClient, RegistryError, RegistryUnreachable, SchemaText, Settings
from moldau.schemas.registry_client.cache import Cache
from moldau.schemas.registry_client.settings import Endpoint
from tests.schemas.stand_in_registry import StandIn, running_stand_in
from tests.security.tls.world import make_world

PERSON = SchemaText(SchemaType.PROTOBUF, 'syntax = "proto3"; message Person { string name = 1; }')
QUICK = {"retries.wait.ms": "1"}


@pytest.fixture
def registry() -> Iterator[StandIn]:
    with running_stand_in() as stand_in:
        yield stand_in


@pytest.fixture
def client(registry: StandIn) -> Iterator[RegistryClient]:
    with RegistryClient({"url": registry.url, **QUICK}) as client:
        yield client


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def test_a_schema_is_registered_and_found_by_id_guid_and_version(registry: StandIn, client: RegistryClient) -> None:
    registered = client.register("people-value", PERSON)
    by_id = client.by_id(1)
    assert (registered.id, registered.subject, by_id.schema) == (1, "people-value", PERSON)
    assert by_id.guid == UUID(registry.guid(1))
    assert client.by_guid(UUID(registry.guid(1))).schema == PERSON
    assert client.version("people-value", 1) == client.version("people-value") == client.lookup("people-value", PERSON)
    assert (client.subjects(), client.versions("people-value")) == (["people-value"], [1])


def test_schemas_are_asked_for_once(registry: StandIn, client: RegistryClient) -> None:
    for _ in range(3):
        client.register("people-value", PERSON)
        client.by_id(1)
        client.version("people-value")
        client.parsed(PERSON)
    assert [(method, target) for method, target, _ in registry.asked] == [
        ("POST", "/subjects/people-value/versions"),
        ("GET", "/schemas/ids/1"),
        ("GET", "/subjects/people-value/versions/latest"),
    ]


def test_which_version_is_the_latest_is_asked_again_after_registering(
    registry: StandIn, client: RegistryClient
) -> None:
    client.register("people-value", PERSON)
    assert client.version("people-value").version == 1
    client.register("people-value", SchemaText(SchemaType.PROTOBUF, PERSON.text.replace("name", "title")))
    assert client.version("people-value").version == 2


def test_the_latest_version_is_asked_for_again_after_its_time(registry: StandIn) -> None:
    with RegistryClient({"url": registry.url, "cache.latest.ttl.sec": 0}) as client:
        client.register("people-value", PERSON)
        client.version("people-value")
        client.version("people-value")
    assert [target for _, target, _ in registry.asked].count("/subjects/people-value/versions/latest") == 2


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("registry-tls")
    world = make_world(folder)
    written = {
        "ca": world.authority.certificate_pem(),
        "server": world.server.key_pem() + world.server.certificate_pem(),
        "client": world.client.certificate_pem(),
        "key": world.client.key_pem(),
    }
    for name, content in written.items():
        (folder / name).write_bytes(content)
    return {name: str(folder / name) for name in written}


def test_a_registry_behind_tls_knows_the_clients_certificate(files: dict[str, str]) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(files["server"])
    tls.load_verify_locations(files["ca"])
    tls.verify_mode = ssl.CERT_REQUIRED
    certificate = {"ssl.certificate.location": files["client"], "ssl.key.location": files["key"]}
    with running_stand_in(tls) as registry:
        trusting = {"url": registry.url, "ssl.ca.location": files["ca"], "max.retries": 0}
        with RegistryClient(trusting | certificate) as client:
            assert client.subjects() == []
        with RegistryClient(trusting) as client, pytest.raises(RegistryUnreachable):
            client.subjects()
        with (
            RegistryClient({"url": registry.url, "max.retries": 0} | certificate) as client,
            pytest.raises(RegistryUnreachable, match="CERTIFICATE_VERIFY_FAILED"),
        ):
            client.subjects()
        with (
            RegistryClient(
                {"url": registry.url, "enable.ssl.certificate.verification": "false"} | certificate
            ) as client,
        ):
            assert client.subjects() == []
        with (
            RegistryClient({"url": registry.url, "ssl.ca.location": "/nowhere"}) as client,
            pytest.raises(RegistryUnreachable, match="its certificates can't be read: No such file"),
        ):
            client.subjects()


def test_a_forked_process_makes_connections_of_its_own(registry: StandIn, client: RegistryClient) -> None:
    client.subjects()
    transport = client._transport
    kept = transport._idle[0][1]
    transport._process = -1  # as it is in a fork
    client.subjects()
    assert transport._idle[0][1] is not kept
    kept.close()


def test_many_threads_share_a_client(registry: StandIn, client: RegistryClient) -> None:
    for number in range(20):
        client.register(f"s{number}", SchemaText(SchemaType.PROTOBUF, f"message M{number} {{}}"))
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda number: client.by_id(number % 20 + 1).schema.text, range(200)))
    assert found == [f"message M{number % 20} {{}}" for number in range(200)]


def test_subjects_are_quoted(registry: StandIn, client: RegistryClient) -> None:
    client.register(":.ctx:a/b c?", PERSON, normalize=True)
    assert registry.asked[0][1] == "/subjects/%3A.ctx%3Aa%2Fb%20c%3F/versions?normalize=true"
    assert client.subjects() == [":.ctx:a/b c?"]


def test_references_are_fetched_with_those_that_they_need(registry: StandIn, client: RegistryClient) -> None:
    client.register("unit.proto", SchemaText(SchemaType.PROTOBUF, 'syntax = "proto3"; enum Unit { KG = 0; M = 1; }'))
    amount = 'syntax = "proto3"; import "unit.proto"; message Amount { Unit unit = 1; }'
    client.register("amount", SchemaText(SchemaType.PROTOBUF, amount, (Reference("unit.proto", "unit.proto", 1),)))
    item = SchemaText(
        SchemaType.PROTOBUF,
        'syntax = "proto3"; import "unit.proto"; import "amount.proto";'
        " message Item { Amount amount = 1; Unit unit = 2; }",
        (Reference("amount.proto", "amount", 1), Reference("unit.proto", "unit.proto", 1)),
    )
    client.register("items-value", item)
    assert [one.name for one in client.references(item)] == ["unit.proto", "amount.proto"]
    assert client.parsed(item).decode(bytes.fromhex("0a0208011001")) == {"amount": {"unit": "M"}, "unit": "M"}


def test_references_in_a_circle_are_refused(client: RegistryClient) -> None:
    one = SchemaText(SchemaType.PROTOBUF, 'import "b";', (Reference("b", "b", 1),))
    client.register("a", one)
    client.register("b", SchemaText(SchemaType.PROTOBUF, 'import "a";', (Reference("a", "a", 1),)))
    with pytest.raises(InvalidSchema, match="circle"):
        client.parsed(one)


def test_compatibility_is_a_verdict_with_reasons(client: RegistryClient) -> None:
    verdict = client.compatibility("people-value", PERSON)
    assert (verdict.compatible, verdict.messages) == (False, ("reason",))


def test_a_refusal_has_the_registrys_code_and_words_and_what_to_do(client: RegistryClient) -> None:
    with pytest.raises(RegistryError, match="Subject not found") as refused:
        client.version("nobody-value")
    assert refused.value.code == 40401
    assert "register a schema for it first" in str(refused.value)
    assert refused.value.is_unknown


def test_what_passes_is_tried_again(registry: StandIn, client: RegistryClient) -> None:
    registry.failing = [503, 429, 500]
    assert client.subjects() == []
    registry.failing = [503] * 4
    with pytest.raises(RegistryError, match="not now"):
        client.subjects()


def test_another_url_answers_when_one_does_not(registry: StandIn) -> None:
    dead = f"http://127.0.0.1:{free_port()}"
    with RegistryClient({"url": f"{dead}, {registry.url}", "max.retries": 0}) as client:
        assert client.subjects() == []
        assert client.subjects() == []
    told = pytest.raises(RegistryUnreachable, match=f"no schema registry answers at {dead}: Connection refused")
    with RegistryClient({"url": dead, "max.retries": 0}) as client, told:
        client.subjects()


def test_a_connection_that_the_registry_closed_is_made_anew() -> None:
    with running_stand_in() as registry:
        client = RegistryClient({"url": registry.url, "max.retries": 0})
        client.subjects()
        idle = client._transport._idle
        assert len(idle) == 1
        idle[0][1].sock.shutdown(socket.SHUT_RDWR)
        assert client.subjects() == []
        client.close()


@pytest.mark.parametrize(
    ("settings", "header"),
    [
        ({"basic.auth.user.info": "ann:s:3"}, "Basic " + base64.b64encode(b"ann:s:3").decode()),
        (
            {"basic.auth.credentials.source": "SASL_INHERIT", "sasl.username": "ann", "sasl.password": "x"},
            "Basic " + base64.b64encode(b"ann:x").decode(),
        ),
        ({"bearer.auth.token": "abc"}, "Bearer abc"),
        ({}, None),
    ],
)
def test_logins_are_sent(registry: StandIn, settings: dict[str, str], header: str | None) -> None:
    with RegistryClient({"schema.registry.url": registry.url, **settings}) as client:
        client.subjects()
    assert registry.asked[0][2].get("Authorization") == header


def test_a_login_may_stand_in_the_url_and_is_never_shown(registry: StandIn) -> None:
    settings = Settings.of({"url": registry.url.replace("//", "//ann:p%40ss@")})
    with RegistryClient(settings) as client:
        client.subjects()
        assert "p@ss" not in client.url + repr(settings)
    assert registry.asked[0][2]["Authorization"] == "Basic " + base64.b64encode(b"ann:p@ss").decode()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "has to name 1 to 32 URLs"),
        ({"url": "ftp://somewhere"}, "expected http"),
        ({"url": "http://user:secret@host:port"}, "'host:port' of a schema registry"),
        ({"url": "http://a", "timeout": "soon"}, "Invalid value 'soon' for schema.registry.timeout"),
        ({"url": "http://a", "max.retries": "-1"}, "can't be negative"),
        ({"url": "http://a", "ssl.truststore.location": "x"}, "Unknown setting 'ssl.truststore.location'"),
        ({"url": "http://a", "basic.auth.user.info": "ann"}, "has to be user:password"),
        ({"url": "http://a", "basic.auth.credentials.source": "OTHER"}, "URL, USER_INFO or SASL_INHERIT"),
        ({"url": "http://a", "basic.auth.credentials.source": "SASL_INHERIT"}, "needs sasl.username"),
        ({"url": "http://a", "bearer.auth.credentials.source": "OAUTHBEARER"}, "not supported"),
        ({"url": "http://a", "bearer.auth.token": "a\nb"}, "no token has"),
        ({"url": "http://a", "enable.ssl.certificate.verification": "no"}, "expected true or false"),
    ],
)
def test_settings_that_can_not_be_are_refused(settings: dict[str, str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Settings.of(settings)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("localhost:8081", "http://localhost:8081"),
        ("https://registry", "https://registry:443"),
        ("http://[::1]:8081/path/", "http://[::1]:8081/path"),
    ],
)
def test_urls_are_completed(url: str, shown: str) -> None:
    assert str(Endpoint.parse(url)) == shown


@pytest.mark.parametrize(
    "answer", [[], {"schema": 1}, {"schema": "x", "schemaType": "XML"}, {"schema": "x", "guid": "1"}]
)
def test_an_answer_that_is_no_schema_is_an_error(answer: Any, registry: StandIn, client: RegistryClient) -> None:
    registry._of_id = lambda number, query: (200, answer)  # type: ignore[method-assign]
    with pytest.raises(RegistryError, match="no schema"):
        client.by_id(1)


def test_what_was_used_longest_ago_leaves_the_cache_first() -> None:
    now = [0.0]
    cache: Cache[str, int] = Cache(2, 10.0, monotonic=lambda: now[0])
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (1, None, 3)
    now[0] = 11.0
    assert cache.get("a") is None
