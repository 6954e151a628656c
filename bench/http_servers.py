"""HTTP servers beside each other: what a request costs each, by its processor time, and what it holds in memory.

python bench/http_servers.py        ours (uvicorn's protocol, starlette's routes, our limits), and what is installed of
                                    uvicorn, hypercorn and granian with one starlette application, and aiohttp
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

CLIENTS = 4
WAIT_S_MAX = 30.0
BODY = json.dumps({"schema": json.dumps({"type": "record", "name": "Order", "fields": []})}).encode()
TICKS = os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--serve", choices=[*SERVERS], help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        SERVERS[options.serve](options.port)
        return
    for name in SERVERS:
        if name == "ours" or importlib.util.find_spec(name) is not None:
            measure(name, options.requests)


def measure(name: str, requests: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, __file__, "--serve", name, "--port", str(port)]
    process = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(port, process)
        ask(port, requests // 10)  # warm
        before_s, began_s = cpu_s(process.pid), time.monotonic()
        ask(port, requests)
        took_s, worked_s = time.monotonic() - began_s, cpu_s(process.pid) - before_s
        figures = f"{requests / took_s:8,.0f} requests a second  {worked_s / requests * 1e6:6.0f} us of CPU each"
        sys.stdout.write(f"{name:10} {figures}  {memory_mb(process.pid):5.0f} MB\n")
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(WAIT_S_MAX)


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline_s = time.monotonic() + WAIT_S_MAX
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline_s:
                raise SystemExit(f"{process.args} did not start") from None
            time.sleep(0.05)


def ask(port: int, requests: int) -> None:
    def some() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        for _ in range(requests // CLIENTS):
            connection.request("POST", "/subjects/orders", BODY, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            content = answer.read()
            if answer.status != 200:
                raise SystemExit(f"{answer.status}: {content[:200]!r}")
        connection.close()

    threads = [threading.Thread(target=some) for _ in range(CLIENTS)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()


def session_of(leader: int) -> list[list[str]]:
    """Fields of /proc/PID/stat behind the name, of all processes that the one started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = [path.parent.name, *path.read_text().rpartition(")")[2].split()]
        except OSError:
            continue
        if int(fields[4]) == leader:
            found.append(fields)
    return found


def cpu_s(leader: int) -> float:
    return sum(int(each[12]) + int(each[13]) for each in session_of(leader)) / TICKS


def memory_mb(leader: int) -> float:
    return sum(int(each[22]) for each in session_of(leader)) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def serve_ours(port: int) -> None:
    import uvloop
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response

    from moldau.web.application import Surroundings, application, route
    from moldau.web.listening import bind, parse_listeners
    from moldau.web.requests import json_body, path_value
    from moldau.web.serving import Server

    async def echo(request: Request) -> Response:
        return JSONResponse({"subject": path_value(request, "subject"), **await json_body(request)})

    around = Surroundings(name="bench", expose=lambda _: None)
    server = Server(
        application([route("/subjects/{subject}", echo, "POST")], around),
        bind(parse_listeners(f"http://127.0.0.1:{port}")),
    )
    uvloop.run(server.serve())


def plain_application() -> Callable[..., object]:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    async def echo(request: Request) -> Response:
        return JSONResponse({"subject": request.path_params["subject"], **await request.json()})

    return Starlette(routes=[Route("/subjects/{subject}", echo, methods=["POST"])])


def serve_uvicorn(port: int) -> None:
    import uvicorn

    uvicorn.run(plain_application(), port=port, log_level="error", access_log=False, loop="uvloop", http="httptools")


def serve_hypercorn(port: int) -> None:
    from hypercorn.asyncio import serve  # type: ignore[import-not-found,unused-ignore]
    from hypercorn.config import Config  # type: ignore[import-not-found,unused-ignore]

    config = Config()
    config.bind = [f"127.0.0.1:{port}"]
    asyncio.run(serve(plain_application(), config))


def serve_granian(port: int) -> None:
    from granian import Granian  # type: ignore[import-not-found,unused-ignore]
    from granian.constants import Interfaces  # type: ignore[import-not-found,unused-ignore]

    target = f"{Path(__file__).stem}:plain_application"
    sys.path.insert(0, str(Path(__file__).parent))
    Granian(target, port=port, interface=Interfaces.ASGI, factory=True, log_access=False).serve()


def serve_aiohttp(port: int) -> None:
    from aiohttp import web  # type: ignore[import-not-found,unused-ignore]

    async def echo(request: web.Request) -> web.Response:
        return web.json_response({"subject": request.match_info["subject"], **await request.json()})

    app = web.Application()
    app.router.add_post("/subjects/{subject}", echo)
    web.run_app(app, host="127.0.0.1", port=port, access_log=None, print=None)


SERVERS: dict[str, Callable[[int], None]] = {
    "ours": serve_ours,
    "uvicorn": serve_uvicorn,
    "hypercorn": serve_hypercorn,
    "granian": serve_granian,
    "aiohttp": serve_aiohttp,
}

if __name__ == "__main__":
    main()
