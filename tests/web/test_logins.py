"""Basic logins by a file of hashed passwords, and what each user may do."""

from __future__ import annotations

import asyncio
import base64

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.testclient import TestClient

from moldau.security.principals import ANONYMOUS
from moldau.web.application import Surroundings, application, route
from moldau.web.authentication import basic_pair, forbidden, login_of, principal_of
from moldau.web.errors import ApiError
from moldau.web.logins import (
    WAITING_MAX,
    Action,
    FileJudge,
    Grant,
    InvalidUsers,
    Login,
    Remembering,
    hashed,
    read_users,
)

PASSWORD = "schön: und lang"
LINE = str(hashed(PASSWORD))
FOUND = Login(ANONYMOUS, ())


async def write(request: Request) -> Response:
    if not login_of(request).may(Action.WRITE, request.path_params["name"]):
        raise forbidden()
    return PlainTextResponse(str(principal_of(request)))


@pytest.fixture(scope="module")
def client() -> TestClient:
    users = read_users(f"# people\nanna: {LINE}, admin\n\nbob: {LINE}, read, write=payments-\n")
    around = Surroundings(name="test", expose=lambda _: None, judge=FileJudge(users))
    return TestClient(application([route("/write/{name}", write)], around), raise_server_exceptions=False)


def basic(user: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def test_a_user_comes_in(client: TestClient) -> None:
    answer = client.get("/write/orders", headers=basic("anna", PASSWORD))
    assert (answer.status_code, answer.text) == (200, "User:anna")


@pytest.mark.parametrize(
    "headers",
    [
        {},
        basic("anna", "wrong"),
        basic("nobody", PASSWORD),
        {"Authorization": "Bearer x"},
        {"Authorization": "Basic %%"},
        basic("anna", "x" * 2_000),
    ],
)
def test_others_do_not(client: TestClient, headers: dict[str, str]) -> None:
    answer = client.get("/write/orders", headers=headers)
    assert (answer.status_code, answer.json()["error_code"]) == (401, 40_101)
    assert answer.headers["WWW-Authenticate"].startswith("Basic realm=")
    assert client.get("/nowhere", headers=headers).status_code == 401, "nobody learns what there is"


def test_health_needs_no_login_but_metrics_do(client: TestClient) -> None:
    assert [client.get(path).status_code for path in ("/health", "/ready", "/metrics")] == [200, 200, 401]


def test_a_user_with_a_prefix_writes_below_it_only(client: TestClient) -> None:
    asked = [client.get(f"/write/{name}", headers=basic("bob", PASSWORD)) for name in ("payments-in", "orders")]
    assert [each.status_code for each in asked] == [200, 403]
    assert asked[1].json() == {"error_code": 40_301, "message": "User is denied operation on this resource"}


@pytest.mark.parametrize(
    ("grants", "action", "name", "is_allowed"),
    [
        ((Grant(Action.READ),), Action.READ, "a", True),
        ((Grant(Action.READ),), Action.WRITE, "a", False),
        ((Grant(Action.ADMIN),), Action.READ, "", True),
        ((Grant(Action.WRITE, "a-"),), Action.READ, "a-b", True),
        ((Grant(Action.WRITE, "a-"),), Action.READ, "", False),
        ((), Action.READ, "a", False),
    ],
)
def test_grants(grants: tuple[Grant, ...], action: Action, name: str, is_allowed: bool) -> None:
    assert Login(ANONYMOUS, grants).may(action, name) is is_allowed


@pytest.mark.parametrize(
    "text",
    [
        "anna",
        f"anna: {LINE}, chief",
        f"anna: {LINE}\nanna: {LINE}",
        "anna: MD5:abc, admin",
        "anna: scrypt:16383:8:1:AAAA:AAAA, admin",
        "anna: scrypt:1048576:32:1:AAAA:" + "A" * 43 + "=, admin",
    ],
    ids=["no hash", "no such role", "twice", "no scrypt", "cost", "memory"],  # the hash is another one in each worker
)
def test_files_that_are_refused(text: str) -> None:
    with pytest.raises(InvalidUsers, match=r"^line \d: expected"):
        read_users(text)


def test_a_right_password_is_judged_once_in_a_while() -> None:
    asked: list[str] = []

    class Counting:
        async def judge(self, user: str, password: str) -> Login | None:
            asked.append(password)
            return FOUND if password == "right" else None

    remembering = Remembering(Counting())

    async def judge(password: str, now_s: float) -> Login | None:
        return await remembering.judge("anna", password, now_s)

    answers = [
        asyncio.run(judge(password, now_s))
        for password, now_s in [("right", 0.0), ("right", 1.0), ("wrong", 1.0), ("wrong", 1.0), ("right", 400.0)]
    ]
    assert asked == ["right", "wrong", "wrong", "right"]
    assert answers == [FOUND, FOUND, None, None, FOUND]


@pytest.mark.parametrize("header", ["", "Basic", "Basic YQ==", "Digest YTpi", "Basic " + "A" * 5_000])
def test_what_is_no_basic_login(header: str) -> None:
    assert basic_pair(header) is None


def test_a_password_may_have_colons() -> None:
    assert basic_pair(basic("a", "b:c")["Authorization"]) == ("a", "b:c")


def test_what_waits_to_be_judged_has_an_end() -> None:
    """Whoever asks and goes leaves a password to be judged: without an end the others would wait for hours."""

    async def check() -> None:
        judge = FileJudge(read_users(f"anna: {LINE}, admin\n"))
        asked = [asyncio.create_task(judge.judge("x", "y")) for _ in range(WAITING_MAX + 5)]
        done, waiting = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
        assert [type(each.exception()) for each in done] == [ApiError] * 5
        for each in waiting:
            each.cancel()
        judge._threads.shutdown(cancel_futures=True)

    asyncio.run(check())


def test_a_judge_that_cannot_tell_is_no_failure() -> None:
    class Unable:
        async def judge(self, user: str, password: str) -> Login | None:
            raise ApiError(503, f"nobody knows {user} now, nor {len(password)}")

    around = Surroundings(name="test", expose=lambda _: None, judge=Unable())
    client = TestClient(application([], around), raise_server_exceptions=False)
    assert client.get("/", headers=basic("anna", "x")).status_code == 503
