"""An issuer of tokens over HTTPS, which gives them to one client."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

CLIENT, SECRET = "app", "the secret of app"


class Issuer:
    def __init__(self, token: Callable[[], str]) -> None:
        self.url = ""
        self.answer: Callable[[], tuple[int, bytes]] = lambda: (200, json.dumps(self.issued()).encode())
        self.lasts: Any = 600
        self.asked: list[dict[str, list[str]]] = []
        self._token = token

    def issued(self) -> dict[str, Any]:
        lasts = {} if self.lasts is None else {"expires_in": self.lasts}
        return {"access_token": self._token(), "token_type": "bearer", **lasts}

    def take(self, authorization: str, body: str) -> tuple[int, bytes]:
        self.asked.append(parse_qs(body))
        if authorization != "Basic " + base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode():
            return 401, b'{"error": "invalid_client"}'
        return self.answer()


@contextmanager
def running_issuer(certificate: Path, token: Callable[[], str]) -> Iterator[Issuer]:
    issuer = Issuer(token)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            status, content = issuer.take(self.headers["Authorization"], body)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        issuer.url = f"https://localhost:{server.server_port}/token"
        try:
            yield issuer
        finally:
            server.shutdown()
            thread.join()
