"""How to reach a registry, by the names that Confluent's and librdkafka's clients have for it."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

PREFIX = "schema.registry."
URLS_MAX = 32
DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One URL of a registry."""

    scheme: str
    host: str
    port: int
    path: str = ""
    login: str | None = field(default=None, repr=False)  # user:password

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.path}"

    @classmethod
    def parse(cls, url: str) -> Endpoint:
        url = url.strip()
        parts = urlsplit(url if "://" in url else f"http://{url}")
        try:
            port = parts.port
        except ValueError:
            port = -1
        if parts.scheme not in DEFAULT_PORTS or not parts.hostname or port == -1:
            shown = url.rpartition("@")[2]  # what may be a password is not repeated
            raise ValueError(f"Invalid URL {shown!r} of a schema registry: expected http(s)://host:port")
        login = None
        if parts.username is not None:
            login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        return cls(parts.scheme, parts.hostname, port or DEFAULT_PORTS[parts.scheme], parts.path.rstrip("/"), login)


@dataclass(frozen=True, slots=True)
class Settings:
    """Immutable and without connections, so that Spark can take them to its workers."""

    endpoints: tuple[Endpoint, ...]
    login: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    token_headers: tuple[tuple[str, str], ...] = ()
    ca: str | None = None
    certificate: str | None = None
    key: str | None = None
    key_password: str | None = field(default=None, repr=False)
    verify: bool = True
    timeout_s: float = 30.0
    retries: int = 3
    retry_wait_ms: int = 200
    retry_wait_ms_max: int = 5_000
    cached_schemas_max: int = 1000
    latest_valid_s: float = 60.0

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Settings:
        """From settings by name, each with or without `schema.registry.` in front. Raises ValueError."""
        given = {name.removeprefix(PREFIX): str(value).strip() for name, value in values.items() if value is not None}
        unknown = sorted(given.keys() - NAMES.keys() - OTHERS)
        if unknown:
            raise ValueError(f"Unknown setting {unknown[0]!r} of the schema registry; known are: {', '.join(known())}")
        urls = [url for url in given.get("url", "").split(",") if url.strip()]
        if not 0 < len(urls) <= URLS_MAX:
            raise ValueError(f"schema.registry.url has to name 1 to {URLS_MAX} URLs, separated by commas")
        chosen = {
            attribute: _read(name, read, given[name]) for name, (attribute, read) in NAMES.items() if name in given
        }
        return cls(
            endpoints=tuple(Endpoint.parse(url) for url in urls),
            login=_login(given),
            token=_token(given),
            token_headers=tuple((header, given[name]) for name, header in TOKEN_HEADERS.items() if name in given),
            **chosen,
        )

    def authorization(self, endpoint: Endpoint) -> str | None:
        """A URL's own login counts before the one that is for all."""
        login = endpoint.login or self.login
        if login is not None:
            return f"Basic {base64.b64encode(login.encode()).decode()}"
        return f"Bearer {self.token}" if self.token else None

    def tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.ca)
        if self.certificate:
            context.load_cert_chain(self.certificate, self.key, self.key_password)
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


def _bool(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("expected true or false")
    return text.lower() == "true"


def _seconds_of_ms(text: str) -> float:
    return int(text) / 1000


Reader = Callable[[str], Any]
NAMES: dict[str, tuple[str, Reader]] = {
    "ssl.ca.location": ("ca", str),
    "ssl.certificate.location": ("certificate", str),
    "ssl.key.location": ("key", str),
    "ssl.key.password": ("key_password", str),
    "enable.ssl.certificate.verification": ("verify", _bool),
    "timeout": ("timeout_s", float),
    "http.read.timeout.ms": ("timeout_s", _seconds_of_ms),
    "max.retries": ("retries", int),
    "retries.wait.ms": ("retry_wait_ms", int),
    "retries.max.wait.ms": ("retry_wait_ms_max", int),
    "cache.capacity": ("cached_schemas_max", int),
    "cache.latest.ttl.sec": ("latest_valid_s", float),
    "latest.cache.ttl.sec": ("latest_valid_s", float),
}
TOKEN_HEADERS = {
    "bearer.auth.logical.cluster": "target-sr-cluster",
    "bearer.auth.identity.pool.id": "Confluent-Identity-Pool-Id",
}
OTHERS = {
    "url",
    "basic.auth.user.info",
    "basic.auth.credentials.source",
    "bearer.auth.token",
    "bearer.auth.credentials.source",
    "sasl.username",
    "sasl.password",
    *TOKEN_HEADERS,
}


def known() -> list[str]:
    """Names of settings, as they are written where settings of other things stand beside them."""
    return sorted(PREFIX + name for name in {*NAMES, *OTHERS})


def _read(name: str, read: Reader, text: str) -> Any:
    try:
        value = read(text)
    except ValueError as wrong:
        raise ValueError(f"Invalid value {text!r} for {PREFIX}{name}: {wrong}") from wrong
    if isinstance(value, int | float) and value < 0:
        raise ValueError(f"Invalid value {text!r} for {PREFIX}{name}: it can't be negative")
    return value


def _login(given: Mapping[str, str]) -> str | None:
    source = given.get(
        "basic.auth.credentials.source", "USER_INFO" if "basic.auth.user.info" in given else "URL"
    ).upper()
    if source == "URL":
        return None  # each endpoint has its own
    if source == "SASL_INHERIT":
        needed = ("sasl.username", "sasl.password")
        if any(name not in given for name in needed):
            raise ValueError("basic.auth.credentials.source=SASL_INHERIT needs sasl.username and sasl.password")
        return ":".join(given[name] for name in needed)
    if source != "USER_INFO":
        raise ValueError(f"Invalid value {source!r} for basic.auth.credentials.source: URL, USER_INFO or SASL_INHERIT")
    if ":" not in given.get("basic.auth.user.info", ""):
        raise ValueError("basic.auth.user.info has to be user:password")
    return given["basic.auth.user.info"]


def _token(given: Mapping[str, str]) -> str | None:
    source = given.get("bearer.auth.credentials.source", "STATIC_TOKEN").upper()
    if source != "STATIC_TOKEN":
        raise ValueError(f"bearer.auth.credentials.source={source} is not supported: STATIC_TOKEN is")
    token = given.get("bearer.auth.token")
    if token is not None and not (token.isascii() and token.isprintable()):
        raise ValueError("bearer.auth.token has characters that no token has")
    return token
