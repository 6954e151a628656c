"""One request, with what an endpoint needs to answer it."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from moldau.rest.problems import not_found
from moldau.rest.sessions import Session
from moldau.web.authentication import forbidden, login_of
from moldau.web.errors import ApiError
from moldau.web.listening import bracketed
from moldau.web.logins import Action
from moldau.web.negotiation import JSON
from moldau.web.requests import body_bytes, encoded, path_value

if TYPE_CHECKING:
    from moldau.rest.proxy import Proxy

B = TypeVar("B")

INT32_MAX = (1 << 31) - 1
PLAIN_HOST = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]{0,252}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?")


@dataclass(frozen=True, slots=True)
class Call:
    request: Request
    proxy: Proxy
    session: Session

    def name(self, parameter: str) -> str:
        """Raises 400 for one that librdkafka would cut short at its zero."""
        found = path_value(self.request, parameter)
        if "\0" in found:
            raise ApiError(400, f"{parameter}: no name has a zero character")
        return found

    def number(self, parameter: str) -> int:
        """404 for what is no number, as for any path that leads nowhere."""
        text = self.name(parameter)
        if not (text.isascii() and text.isdigit()) or len(text) > 10 or int(text) > INT32_MAX:
            raise ApiError(404, "HTTP 404 Not Found")
        return int(text)

    def query(self, name: str) -> str | None:
        return self.request.query_params.get(name)

    async def body(self, shape: type[B], *, wrong: int = 400) -> B:
        """400 for what is no JSON, `wrong` for JSON of another shape."""
        content = await body_bytes(self.request)
        if not content.strip():
            raise ApiError(42206, "Payload error. Request body is empty. Data is required.")
        return parsed(content, shape, wrong=wrong)

    def may(self, action: Action, name: str) -> bool:
        return login_of(self.request).may(action, name)

    def require(self, action: Action, *names: str) -> None:
        """403 for what a user of the proxy has no right to."""
        if not all(self.may(action, each) for each in names):
            raise forbidden()

    @property
    def base_url(self) -> str:
        advertised = self.proxy.settings.advertised_url
        return (advertised or _seen_url(self.request)).rstrip("/")

    def url(self, *parts: object) -> str:
        return "/".join((self.base_url, *(quote(str(each), safe="") for each in parts)))

    async def check_cluster(self) -> str:
        """The id in the path, which has to be that of the one cluster there is."""
        wanted = self.name("cluster_id")
        if wanted != await self.session.cluster_id():
            raise not_found("Cluster", wanted)
        return wanted


def _seen_url(request: Request) -> str:
    """As the client called the proxy, if that is a host's name and no more; else where it listens."""
    said = request.headers.get("host", "")
    if not PLAIN_HOST.fullmatch(said):
        host, port = request.scope["server"]
        said = f"{bracketed(host)}:{port}"
    return f"{request.scope['scheme']}://{said}"


def parsed(content: bytes, shape: type[B], *, wrong: int = 400) -> B:
    try:
        return msgspec.json.decode(content, type=shape)
    except msgspec.ValidationError as why:
        raise ApiError(wrong, f"Invalid request: {why}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as why:
        raise ApiError(400, f"Request body is not valid JSON: {why}") from None
    except RecursionError:
        raise ApiError(400, "Request body is nested too deeply") from None


def answer(content: object, status: int = 200, *, media_type: str = JSON, location: str | None = None) -> Response:
    headers = {} if location is None else {"Location": location}
    return Response(encoded(content), status, headers=headers, media_type=media_type)


def no_content() -> Response:
    return Response(status_code=204)


Chunks = AsyncGenerator[bytes, None]
Json = dict[str, Any]
