"""Who may come in, and what of the cluster each one gets."""

from __future__ import annotations

import asyncio
import http.client
import json
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, AdminClient, ResourcePatternType
from confluent_kafka.admin import ResourceType as Resource

import moldau
from moldau.rest.producing import producers
from moldau.rest.sessions import Sessions
from moldau.rest.settings import RestSettings
from moldau.rest.threads import Threads
from moldau.web.errors import ApiError
from moldau.web.logins import hashed
from tests.rest.proxies import BINARY, JSON, V2, WAIT_S_MAX, Proxy, basic, eventually, running_proxy

pytestmark = pytest.mark.xdist_group("rest-secure")

ALICE, BOB = ("alice", "alice's secret"), ("bob", "bob's secret")
RECORDS = {"records": [{"value": "aGk="}]}


@pytest.fixture(scope="module")
def broker() -> Iterator[moldau.EmbeddedBroker]:
    with moldau.run(secure=True) as running:
        for topic in ("hers", "his"):
            running.create_topic(topic)
        for user in (ALICE, BOB):
            running.add_user(*user)
        allow(running, "alice", Resource.TOPIC, "hers", AclOperation.ALL)
        allow(running, "alice", Resource.GROUP, "her-group", AclOperation.READ)
        yield running


def allow(broker: moldau.EmbeddedBroker, user: str, kind: Resource, name: str, operation: AclOperation) -> None:
    binding = AclBinding(
        kind, name, ResourcePatternType.LITERAL, f"User:{user}", "*", operation, AclPermissionType.ALLOW
    )
    admin = AdminClient(broker.clients.confluent)
    for future in admin.create_acls([binding]).values():
        future.result(30)


def options(broker: moldau.EmbeddedBroker, *left_out: str) -> list[str]:
    settings = {key: value for key, value in broker.clients.confluent.items() if key not in left_out}
    return [word for key, value in settings.items() for word in ("-X", f"{key}={value}")]


@pytest.fixture(scope="module")
def passthrough(broker: moldau.EmbeddedBroker) -> Iterator[Proxy]:
    own = options(broker, "sasl.username", "sasl.password")
    with running_proxy(broker.bootstrap_servers, "--authentication", "passthrough", *own) as running:
        yield running


def test_it_is_ready_without_a_login_of_its_own(passthrough: Proxy) -> None:
    assert passthrough.get("/ready").json == {"status": "ready", "reasons": []}


def test_the_cluster_judges_each_user(passthrough: Proxy) -> None:
    def produce(user: tuple[str, str], topic: str) -> tuple[int, int | None]:
        answer = passthrough.post(f"/topics/{topic}", RECORDS, kind=BINARY, login=user)
        code = answer.json.get("error_code") or answer.json["offsets"][0]["error_code"]
        return answer.status, code

    assert produce(ALICE, "hers") == (200, None)
    assert produce(BOB, "hers") == (403, 40301)
    assert passthrough.get("/topics", login=ALICE).json == ["hers"]
    assert "hers" not in passthrough.get("/topics", login=BOB).json
    cluster = passthrough.get("/v3/clusters", login=ALICE).json["data"][0]["metadata"]["self"].rpartition(":")[2]
    cluster = "/" + cluster.partition("/")[2]
    assert passthrough.post(f"{cluster}/topics", {"topic_name": "new"}, login=ALICE).code == 40301
    assert passthrough.get(f"{cluster}/acls", login=ALICE).code == 40301
    stream = f"{cluster}/topics/hers/records?from=beginning&until=end"
    assert len(passthrough.get(stream, login=ALICE).lines) == 1
    assert passthrough.get(stream, login=BOB).code == 40301


def test_a_right_that_comes_later_counts(broker: moldau.EmbeddedBroker, passthrough: Proxy) -> None:
    """Without any right to write an idempotent producer fails for good, and another has to take its place."""
    allow(broker, "bob", Resource.TOPIC, "his", AclOperation.DESCRIBE)

    def status() -> int:
        return passthrough.post("/topics/his", RECORDS, kind=BINARY, login=BOB).status

    assert {status() for _ in range(3)} == {403}
    allow(broker, "bob", Resource.TOPIC, "his", AclOperation.WRITE)
    eventually(lambda: status() == 200)


def test_a_record_says_why_it_is_refused_before_its_producer_has_heard_so(
    broker: moldau.EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """librdkafka takes no more records once a producer failed, and says why by another way."""
    is_heard = threading.Event()
    poll = producers.Running.poll

    def late(running: producers.Running) -> None:
        is_heard.wait(WAIT_S_MAX)
        poll(running)

    monkeypatch.setattr(producers.Running, "poll", late)
    broker.add_user("dave", "his")
    allow(broker, "dave", Resource.TOPIC, "his", AclOperation.DESCRIBE)
    client = {**broker.clients.confluent, "sasl.username": "dave", "sasl.password": "his"}
    record = producers.Record("his", None, b"x")

    async def play() -> list[object]:
        threads = Threads(consuming=1, streaming=1)
        own = producers.Producers(client, RestSettings(client=client), threads)
        try:
            sent = [await own.send(record)]
            failing = own.running
            async with asyncio.timeout(WAIT_S_MAX):
                while own.running is failing:
                    sent.append(await own.send(record))
                    await asyncio.sleep(0.01)
            is_heard.set()
            return await asyncio.gather(*sent, return_exceptions=True)
        finally:
            is_heard.set()
            own.close()
            threads.close()

    refused = asyncio.run(play())
    assert {each.code for each in refused if isinstance(each, ApiError)} == {40301}
    assert len(refused) > 1
    assert all(isinstance(each, ApiError) for each in refused)


@pytest.mark.parametrize("login", [None, ("alice", "a guess"), ("nobody", "x"), ("", ""), ("alice", "")])
def test_nobody_comes_in_without_a_login(passthrough: Proxy, login: tuple[str, str] | None) -> None:
    for answer in (passthrough.get("/v3/clusters", login=login), passthrough.post("/consumers/g", {}, login=login)):
        assert (answer.status, answer.code) == (401, 40101)
        assert answer.headers["www-authenticate"].startswith("Basic ")
    assert passthrough.get("/health", login=login).status == 200


def test_instances_belong_to_those_who_made_them(passthrough: Proxy) -> None:
    assert passthrough.post("/topics/hers", RECORDS, kind=BINARY, login=ALICE).status == 200
    path = "/consumers/her-group"
    wanted = {"name": "one", "auto.offset.reset": "earliest"}
    assert passthrough.post(path, wanted, kind=V2, login=ALICE).status == 200
    assert passthrough.get(f"{path}/instances/one/subscription", login=BOB).code == 40403
    assert passthrough.ask("DELETE", f"{path}/instances/one", login=BOB).code == 40403
    assert passthrough.post(path, wanted, kind=V2, login=BOB).status == 200, "a name of his own"
    for user in (ALICE, BOB):
        body = {"topics": ["hers"]}
        assert passthrough.post(f"{path}/instances/one/subscription", body, kind=V2, login=user).status == 204
    found = eventually(lambda: passthrough.get(f"{path}/instances/one/records", login=ALICE).json)
    assert found[0]["value"] == "aGk="
    refused = eventually(lambda: refusal(passthrough, f"{path}/instances/one/records"))
    assert refused == 40301
    for user in (ALICE, BOB):
        assert passthrough.ask("DELETE", f"{path}/instances/one", login=user).status == 204


def test_over_https(broker: moldau.EmbeddedBroker, tmp_path: Path) -> None:
    assert broker.login is not None
    (tmp_path / "users").write_text(f"admin: {hashed('admin')}, admin\n")
    keys = {"ssl.keystore.type": "PEM", "ssl.keystore.location": broker.login.authority.parent / "server.pem"}
    arguments = ("--users", str(tmp_path / "users"), *options(broker))
    trusting = ssl.create_default_context(cafile=broker.login.authority)
    headers = {"Authorization": basic("admin", "admin"), "Content-Type": V2}
    with running_proxy(broker.bootstrap_servers, *arguments, properties=keys) as proxy:
        assert proxy.url.startswith("https://")
        connection = http.client.HTTPSConnection(*proxy.address, context=trusting, timeout=WAIT_S_MAX)
        connection.request("POST", "/consumers/g", json.dumps({"name": "one"}), headers)
        answer = connection.getresponse()
        assert json.load(answer)["base_uri"] == f"{proxy.url}/consumers/g/instances/one"
        connection.request("GET", "/topics", headers={"Authorization": basic("admin", "guess")})
        refused = connection.getresponse()
        assert (refused.status, json.load(refused)["error_code"]) == (401, 40101)
        connection.request("GET", "/v3/clusters", headers=headers)
        cluster = json.load(connection.getresponse())["data"][0]["metadata"]["self"].removeprefix(proxy.url)
        body = json.dumps({"value": {"type": "STRING", "data": "by TLS"}}).encode() * 3
        connection.request("POST", f"{cluster}/topics/his/records", body, {**headers, "Content-Type": JSON})
        assert [json.loads(each)["error_code"] for each in connection.getresponse().read().splitlines()] == [200] * 3
        asked = f"{cluster}/topics/his/records?from=beginning&until=end"
        connection.request("GET", asked, headers={**headers, "Accept": "application/x-ndjson"})
        lines = connection.getresponse().read().splitlines()
        assert "by TLS" in [json.loads(each)["value"]["data"] for each in lines]
        connection.close()
        stranger = http.client.HTTPSConnection(*proxy.address, timeout=WAIT_S_MAX)
        with pytest.raises(ssl.SSLCertVerificationError):
            stranger.request("GET", "/ready")
        stranger.close()
        with pytest.raises((http.client.HTTPException, OSError)):
            proxy.get("/ready")  # no TLS


def refusal(proxy: Proxy, path: str) -> int | None:
    answer = proxy.get(path, login=BOB)
    return None if answer.status == 200 else answer.code


def test_users_of_the_proxy_have_its_login(broker: moldau.EmbeddedBroker, tmp_path: Path) -> None:
    users = tmp_path / "users"
    lines = [("admin", "admin"), ("writer", "write=hers"), ("reader", "read")]
    users.write_text("".join(f"{name}: {hashed(name)}, {role}\n" for name, role in lines))
    with running_proxy(broker.bootstrap_servers, "--users", str(users), *options(broker)) as proxy:
        admin, writer, reader = (("admin",) * 2, ("writer",) * 2, ("reader",) * 2)
        cluster = "/v3/clusters/" + proxy.get("/v3/clusters", login=reader).json["data"][0]["cluster_id"]
        assert proxy.get("/topics").status == 401
        assert proxy.get("/topics", login=("admin", "guess")).status == 401
        assert proxy.post("/topics/hers", RECORDS, kind=BINARY, login=writer).status == 200
        assert proxy.post("/topics/his", RECORDS, kind=BINARY, login=writer).code == 40301
        assert proxy.post("/topics/his", RECORDS, kind=BINARY, login=reader).code == 40301
        assert proxy.get("/topics/his", login=reader).status == 200
        assert proxy.get("/topics/his", login=writer).code == 40301
        assert proxy.get("/topics", login=writer).json == ["hers"]
        listed = proxy.get(f"{cluster}/topics", login=writer).json["data"]
        assert [each["topic_name"] for each in listed] == ["hers"]
        assert proxy.post(f"{cluster}/topics", {"topic_name": "new"}, login=reader).code == 40301
        assert proxy.get(f"{cluster}/acls", login=reader).code == 40301
        assert proxy.post(f"{cluster}/topics", {"topic_name": "new"}, login=admin).status == 201
        assert proxy.post("/consumers/hers-1", {"name": "w"}, kind=V2, login=writer).status == 200
        path = "/consumers/hers-1/instances/w"
        for body in ({"topics": ["his"]}, {"topic_pattern": ".*"}):
            assert proxy.post(f"{path}/subscription", body, kind=V2, login=writer).code == 40301
        places = {"partitions": [{"topic": "his", "partition": 0}]}
        assert proxy.post(f"{path}/assignments", places, kind=V2, login=writer).code == 40301


def test_a_password_that_was_changed_is_soon_good_no_more(broker: moldau.EmbeddedBroker) -> None:
    """However often it is used meanwhile: the connections that it opened live on."""
    own = {key: value for key, value in broker.clients.confluent.items() if not key.startswith("sasl.user")}

    async def check() -> None:
        settings = RestSettings(client={**own, "sasl.password": ""}, login_checked_s=0.0, timeout_s=20.0)
        threads = Threads(consuming=1, streaming=1)
        sessions = Sessions(settings, threads)
        try:
            broker.add_user("carol", "old")
            first = await sessions.passed_through("carol", "old")
            assert await sessions.passed_through("carol", "old") is first
            broker.add_user("carol", "new")
            with pytest.raises(ApiError, match="does not accept this login"):
                await sessions.passed_through("carol", "old")
            assert await sessions.passed_through("carol", "new") is not first
        finally:
            sessions.close()
            threads.close()

    asyncio.run(check())
