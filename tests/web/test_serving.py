"""A server under clients that are slow, greedy or gone: they get an error or nothing, and nobody else waits."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from moldau.web.application import Surroundings, application, route
from moldau.web.errors import ApiError
from moldau.web.limits import Limits
from moldau.web.requests import json_body, path_value
from moldau.web.serving import Server
from tests.web.running import WAIT_S_MAX, connected, everything, serving, url_of

IMPATIENT = Limits(
    head_s=0.5, body_s=0.5, unread_s=0.5, idle_s=1.0, linger_s=1.0, body_bytes=1_000, header_bytes=4_000, connections=20
)


class Slow:
    def __init__(self) -> None:
        self.has_begun = threading.Event()
        self.may_end = threading.Event()

    async def answer(self, _: Request) -> Response:
        self.has_begun.set()
        await asyncio.to_thread(self.may_end.wait, WAIT_S_MAX)
        return PlainTextResponse("late")


async def echo(request: Request) -> Response:
    return Response(await request.body())


async def name(request: Request) -> Response:
    return PlainTextResponse(path_value(request, "name"))


async def parsed(request: Request) -> Response:
    return PlainTextResponse(str(await json_body(request)))


async def endless(_: Request) -> Response:
    async def blocks() -> object:
        while True:
            yield b"x" * 65_536
            await asyncio.sleep(0)

    return StreamingResponse(blocks())  # type: ignore[arg-type]


async def wrong(_: Request) -> Response:
    raise ApiError(40_401, "there is none")


async def broken(_: Request) -> Response:
    raise ValueError("a secret in a stack trace")


@pytest.fixture(scope="module")
def around() -> Surroundings:
    return Surroundings(name="test", expose=lambda found: found.add("mine", "Of the application", {}, 3))


@pytest.fixture(scope="module")
def slow() -> Slow:
    return Slow()


@pytest.fixture(scope="module")
def server(around: Surroundings, slow: Slow) -> Iterator[Server]:
    routes = [
        route("/echo", echo, "POST"),
        route("/names/{name}", name),
        route("/json", parsed, "POST"),
        route("/endless", endless),
        route("/wrong", wrong),
        route("/broken", broken),
        route("/slow", slow.answer),
    ]
    around.limits = IMPATIENT
    with serving(application(routes, around), limits=IMPATIENT) as found:
        around.guard = found.guard
        yield found


def ask(server: Server, path: str, *, method: str = "GET", body: bytes | None = None) -> tuple[int, bytes]:
    request = urllib.request.Request(url_of(server, path), body, method=method)
    try:
        with urllib.request.urlopen(request, timeout=WAIT_S_MAX) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.read()


def wait(is_so: Callable[[], object]) -> None:
    deadline_s = time.monotonic() + WAIT_S_MAX
    while not is_so():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


@pytest.mark.parametrize(("count", "is_answered"), [(40, True), (5_000, False)])
def test_requests_that_are_sent_without_waiting_are_answered_up_to_a_number(count: int, is_answered: bool) -> None:
    begun = []

    async def counted(_: Request) -> Response:
        begun.append(1)
        await asyncio.sleep(0)
        return PlainTextResponse("ok")

    with serving(application([route("/", counted)], Surroundings(name="test", expose=lambda _: None))) as server:
        with connected(server) as connection, suppress(OSError):
            connection.sendall(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n" * count + b"GET / HTTP/1.0\r\n\r\n")
            answers = everything(connection).count(b"HTTP/1.1 200")
            assert answers == count + 1 or not is_answered
        assert (len(begun) == count + 1) is is_answered
        assert server.guard.dropped["pipelined"] == (0 if is_answered else 1)


def test_an_answer(server: Server) -> None:
    assert ask(server, "/echo", method="POST", body=b"hello") == (200, b"hello")


def test_a_name_may_have_a_slash(server: Server) -> None:
    assert ask(server, "/names/a%2Fb%20%C3%A9") == (200, "a/b é".encode())


def test_a_name_that_is_no_text(server: Server) -> None:
    assert ask(server, "/names/%FF")[0] == 400


@pytest.mark.parametrize(
    ("path", "method", "status", "code"),
    [("/none", "GET", 404, 404), ("/echo", "GET", 405, 405), ("/wrong", "GET", 404, 40_401)],
)
def test_errors_have_one_shape(server: Server, path: str, method: str, status: int, code: int) -> None:
    found, body = ask(server, path, method=method)
    assert (found, json.loads(body)["error_code"]) == (status, code)
    assert json.loads(body).keys() == {"error_code", "message"}


def test_a_failure_of_ours_tells_nothing(server: Server) -> None:
    status, body = ask(server, "/broken")
    assert (status, json.loads(body)) == (500, {"error_code": 50_001, "message": "Internal Server Error"})


@pytest.mark.parametrize("body", [b"{", b"\xff", b"[" * 900, b""], ids=["half", "no text", "deep", "empty"])
def test_what_is_no_json(server: Server, body: bytes) -> None:
    assert ask(server, "/json", method="POST", body=body)[0] == 400


@pytest.mark.parametrize(
    ("site", "status"), [("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)]
)
def test_pages_of_other_sites_cannot_have_a_browser_write(server: Server, site: str, status: int) -> None:
    """A form, or a body without a type, which browsers send without asking first."""
    with connected(server) as client:
        client.sendall(f"POST /echo HTTP/1.0\r\nSec-Fetch-Site: {site}\r\nContent-Length: 2\r\n\r\n{{}}".encode())
        assert everything(client).startswith(f"HTTP/1.1 {status} ".encode())


def test_a_body_that_says_it_is_too_large(server: Server) -> None:
    with connected(server) as client:
        client.sendall(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n")
        assert everything(client).startswith(b"HTTP/1.1 413 ")


def test_a_body_that_turns_out_to_be_too_large(server: Server) -> None:
    with connected(server) as client:
        client.sendall(b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(2):
            client.sendall(b"1f5\r\n" + b"x" * 501 + b"\r\n")
        assert everything(client).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize("more", ["", "Connection: close\r\n"], ids=["keep", "close"])
def test_who_sends_all_of_a_large_body_reads_the_answer(server: Server, more: str) -> None:
    """A connection that is closed upon bytes that nobody has read is reset, and the answer with it."""
    size = 32 << 20  # more than both ends' buffers
    with connected(server) as client:
        client.sendall(f"POST /echo HTTP/1.1\r\nHost: x\r\n{more}Content-Length: {size}\r\n\r\n".encode())
        client.sendall(bytes(size))
        assert client.recv(100).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 5_000 + b"\r\n\r\n", 431),
        (b"GET /" + b"x" * 5_000 + b" HTTP/1.1\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * (16 << 20) + b"\r\n\r\n", 431),
        (b"\x16\x03\x01\x02\x00", 400),
        (b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
    ],
    ids=["header", "path", "large", "tls", "length"],
)
def test_heads_that_are_too_large_or_none(server: Server, request_bytes: bytes, status: int) -> None:
    with connected(server) as client:
        client.sendall(request_bytes)
        answer = everything(client)
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error_code"] == status


def test_a_head_that_grows_in_small_pieces(server: Server) -> None:
    with connected(server) as client:
        client.sendall(b"GET / HTTP/1.1\r\nX: ")
        for _ in range(100):
            client.sendall(b"x" * 100)
        answer = everything(client)
    assert answer.startswith(b"HTTP/1.1 431 ")


def test_who_never_ends_what_is_not_read_is_dropped(server: Server) -> None:
    before = server.guard.dropped["body"]
    with connected(server) as client:
        client.sendall(b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        deadline_s = time.monotonic() + WAIT_S_MAX
        is_open = True
        while is_open and time.monotonic() < deadline_s:
            try:
                client.sendall(b"1f5\r\n" + b"x" * 501 + b"\r\n")
            except OSError:
                is_open = False
    assert server.guard.dropped["body"] == before + 1


@pytest.mark.parametrize(
    ("begin", "more", "reason"),
    [
        (b"", b"", "idle"),
        (b"GET /echo HTTP/1.1\r\n", b"X", "head"),
        (b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 900\r\n\r\n", b"x", "body"),
    ],
    ids=["nothing", "head", "body"],
)
def test_who_sends_a_byte_now_and_then_is_dropped(server: Server, begin: bytes, more: bytes, reason: str) -> None:
    before = server.guard.dropped[reason]
    with connected(server) as client:
        client.sendall(begin)
        client.settimeout(0.1)
        is_open, deadline_s = True, time.monotonic() + WAIT_S_MAX
        while is_open:
            assert time.monotonic() < deadline_s
            try:
                client.sendall(more)
                is_open = bool(client.recv(100))
            except TimeoutError:
                assert ask(server, "/health")[0] == 200, "nobody else waits"
            except OSError:
                is_open = False
    assert server.guard.dropped[reason] == before + 1


def test_who_reads_nothing_is_dropped(server: Server) -> None:
    before = server.guard.dropped["answer"]
    with connected(server) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        client.sendall(b"GET /endless HTTP/1.1\r\nHost: x\r\n\r\n")
        wait(lambda: server.guard.dropped["answer"] == before + 1)
        wait(lambda: not server.state.tasks)
    assert ask(server, "/health")[0] == 200


def test_a_client_that_goes_ends_its_request(server: Server) -> None:
    with connected(server) as client:
        client.sendall(b"GET /endless HTTP/1.1\r\nHost: x\r\n\r\n")
        client.recv(100)
    wait(lambda: not server.state.tasks)


def test_nothing_is_written_to_a_client_that_went_with_requests_waiting(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    with connected(server) as client:
        client.sendall(b"GET /endless HTTP/1.1\r\nHost: x\r\n\r\n" * 3)
        client.recv(100)
    wait(lambda: not server.state.tasks)
    assert [each.getMessage() for each in caplog.records if each.name == "asyncio"] == []


def test_connections_that_ask_nothing_make_room(server: Server) -> None:
    wait(lambda: not server.guard.connections)
    strangers = [connected(server) for _ in range(IMPATIENT.connections + 5)]
    try:
        assert ask(server, "/health")[0] == 200
        assert len(server.guard.connections) <= IMPATIENT.connections
    finally:
        for each in strangers:
            each.close()


def test_requests_that_were_sent_without_waiting_are_answered_in_order(server: Server) -> None:
    with connected(server) as client:
        client.sendall(
            b"GET /names/a HTTP/1.1\r\nHost: x\r\n\r\nGET /names/b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        )
        answers = everything(client)
    assert answers.count(b"200 OK") == 2
    assert answers.index(b"\r\n\r\na") < answers.index(b"\r\n\r\nb")


def test_metrics_are_prometheus_and_count(server: Server) -> None:
    ask(server, "/wrong")
    text = ask(server, "/metrics")[1].decode()
    families = {each.name: each for each in text_string_to_metric_families(text)}
    assert families["mine"].samples[0].value == 3
    counted = {tuple(each.labels.values()): each.value for each in families["moldau_test_http_requests"].samples}
    assert counted["GET", "/wrong", "404"] >= 1
    assert families["moldau_test_http_connections"].samples[0].value >= 1


def test_readiness_and_health_give_reasons(server: Server, around: Surroundings) -> None:
    assert ask(server, "/ready") == (200, b'{"status":"ready","reasons":[]}')
    around.unready = lambda: ["reads"]
    try:
        assert ask(server, "/ready") == (503, b'{"status":"starting","reasons":["reads"]}')
    finally:
        around.unready = lambda: ()


def test_the_end_waits_for_what_is_under_way() -> None:
    slow = Slow()
    around = Surroundings(name="test", expose=lambda _: None)
    answers: list[bytes] = []
    with serving(application([route("/slow", slow.answer)], around)) as server:
        client, idle = connected(server), connected(server)
        client.sendall(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
        reader = threading.Thread(target=lambda: answers.append(everything(client)))
        reader.start()
        assert slow.has_begun.wait(WAIT_S_MAX)

        def end_when_closed() -> None:
            everything(idle)
            slow.may_end.set()

        closed = threading.Thread(target=end_when_closed)
        closed.start()
    reader.join(WAIT_S_MAX)
    client.close()
    closed.join(WAIT_S_MAX)
    idle.close()
    assert answers[0].endswith(b"late")


def test_the_end_does_not_wait_for_ever() -> None:
    slow = Slow()
    around = Surroundings(name="test", expose=lambda _: None)
    with serving(application([route("/slow", slow.answer)], around), limits=Limits(leave_s=0.2)) as server:
        client = connected(server)
        client.sendall(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
        assert slow.has_begun.wait(WAIT_S_MAX)
        answers: list[bytes] = []

        def end_when_closed() -> None:
            answers.append(everything(client))
            slow.may_end.set()  # for its thread, which the loop waits for

        closed = threading.Thread(target=end_when_closed)
        closed.start()
    closed.join(WAIT_S_MAX)
    client.close()
    assert answers == [b""]


def test_a_body_that_came_fast_earns_no_silence() -> None:
    limits = Limits(body_s=0.5)
    around = Surroundings(name="test", expose=lambda _: None, limits=limits)
    app = application([route("/echo", echo, "POST")], around)
    with serving(app, limits=limits) as server, connected(server) as client:
        client.sendall(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\n" + b"x" * 800_000)
        wait(lambda: server.guard.dropped["body"] == 1)


def test_all_bodies_together_have_a_limit() -> None:
    """And whoever sends little is let through, however much the others have sent."""
    limits = Limits(bodies_bytes=300_000, small_body_bytes=10_000)
    around = Surroundings(name="test", expose=lambda _: None, limits=limits)
    with serving(application([route("/echo", echo, "POST")], around), limits=limits) as server:
        with connected(server) as client:
            client.sendall(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 400000\r\n\r\n" + b"x" * 290_000)
            wait(lambda: ask(server, "/echo", method="POST", body=b"x" * 50_000)[0] == 503)
            assert ask(server, "/echo", method="POST", body=b"x" * 5_000)[0] == 200
        wait(lambda: ask(server, "/echo", method="POST", body=b"x" * 50_000)[0] == 200)


@pytest.mark.parametrize("lasts_s", [0.3, WAIT_S_MAX])
def test_a_request_closes_what_it_opened_when_the_server_ends(caplog: pytest.LogCaptureFixture, lasts_s: float) -> None:
    """Behind its answer, when its connection is closed already."""
    closed: list[bool] = []

    async def app(_: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})
        try:
            await asyncio.sleep(lasts_s)
            closed.append(True)
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            closed.append(False)
            raise

    with caplog.at_level("ERROR"), serving(app) as server, urllib.request.urlopen(url_of(server)) as answer:
        assert answer.read() == b"ok"
    assert closed == [lasts_s < WAIT_S_MAX]
    assert not caplog.records
