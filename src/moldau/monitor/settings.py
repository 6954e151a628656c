"""The monitor's file: clusters, rules, notifiers. A wrong key is named, with what it probably means.

listen = "127.0.0.1:8000"
history = "lag.sqlite"
interval = 10
metrics = ["burrow", "kafka_exporter", "kafka_lag_exporter", "kminion"]
otlp-endpoint = "http://collector:4318"    # of OpenTelemetry; and otlp-interval, in seconds

[rules]
allowed-lag = 0

[clusters.orders]
bootstrap-server = "kafka-1:9092"      # or profile = "staging"; also command-config, timeout and client properties
group-denylist = "^console-consumer-"
read-commits = false                   # poll offsets, where __consumer_offsets is more than one core can read
[clusters.orders.client]
"security.protocol" = "ssl"

[notifiers.pager]
url-open = "https://pager.example/incidents"
threshold = "ERR"

[notifiers.team]
server = "mail.example"
from = "moldau@example"
to = ["team@example"]
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from string import Template
from typing import Any, TypeVar

from moldau.core.config.monitoring import EXPECTED_URL, is_http_url
from moldau.monitor.judging import Rules
from moldau.monitor.notifying.deciding import When
from moldau.monitor.notifying.messages import BadTemplate, checked
from moldau.monitor.notifying.sending import Call, HttpSender, MailSender, Sender, can_be_written_to
from moldau.monitor.rules import Status
from moldau.monitor.watching import Wanted

T = TypeVar("T")

LISTEN = "127.0.0.1:8000"
INTERVAL_S = 10.0
OTLP_INTERVAL_S = 60.0
FAMILIES = ("burrow", "kafka_exporter", "kafka_lag_exporter", "kminion")
TLS = ("none", "starttls", "tls")
SUBJECT = "$status: group $group of $cluster"
GROUPS = ("group-allowlist", "group-denylist")
_HEADER_NAME, _HEADER_VALUE = re.compile(r"[!#-'*+.^_`|~0-9A-Za-z-]+"), re.compile(r"[\t -~\x80-\xff]*")
CONNECTION = ("bootstrap-server", "profile", "command-config", "timeout")


class InvalidSettings(Exception):
    """The text names the key."""


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    name: str
    connection: Mapping[str, Any] = field(default_factory=dict)
    """bootstrap-server, profile, command-config, timeout."""
    client: Mapping[str, str] = field(default_factory=dict)
    read_commits: bool = True
    wanted: Wanted = field(default_factory=Wanted)


@dataclass(frozen=True, slots=True)
class NotifierSettings:
    name: str
    sender: Sender
    when: When
    wanted: Wanted


@dataclass(frozen=True, slots=True)
class Settings:
    clusters: tuple[ClusterSettings, ...] = ()
    notifiers: tuple[NotifierSettings, ...] = ()
    rules: Rules = field(default_factory=Rules)
    listen: str = LISTEN
    history: str | None = None
    interval_s: float = INTERVAL_S
    metrics: tuple[str, ...] = FAMILIES
    otlp_endpoint: str | None = None
    """An OpenTelemetry collector that gets what `/metrics` tells."""
    otlp_interval_s: float = OTLP_INTERVAL_S


class Table:
    """One table of the file: each key is taken once, and what is left over is unknown."""

    def __init__(self, content: Any, where: str) -> None:
        if not isinstance(content, Mapping):
            raise InvalidSettings(f"{where}: expected a table")
        self._left = dict(content)
        self._where = where
        self._known: list[str] = []

    def path(self, key: str) -> str:
        return f"{self._where}.{key}" if self._where else key

    def take(self, key: str, kinds: type | tuple[type, ...], usual: T) -> T | Any:
        self._known.append(key)
        value = self._left.pop(key, None)
        if value is None:
            return usual
        if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool):
            name = {str: "a text", bool: "true or false", list: "a list", dict: "a table"}.get(kinds, "a number")  # type: ignore[arg-type]
            raise InvalidSettings(f"{self.path(key)}: expected {name}")
        return value

    def has(self, key: str) -> bool:
        return key in self._left

    def text(self, key: str) -> str | None:
        found: str | None = self.take(key, str, None)
        return found

    def needed(self, key: str) -> str:
        found = self.text(key)
        if found is None:
            raise InvalidSettings(f"{self.path(key)} is missing")
        return found

    def number(self, key: str, usual: float, *, least: float, most: float = float("inf")) -> float:
        found: float = self.take(key, (int, float), usual)
        if not least <= found <= most:
            raise InvalidSettings(f"{self.path(key)}: expected {least:g} or more" + f", up to {most:g}" * (most < 1e9))
        return found

    def choice(self, key: str, usual: str, choices: Collection[str]) -> str:
        found: str = self.take(key, str, usual)
        if found not in choices:
            raise InvalidSettings(f"{self.path(key)}: unknown value {found!r}; expected {', '.join(choices)}")
        return found

    def texts(self, key: str) -> dict[str, str]:
        found: Mapping[str, Any] = self.take(key, dict, {})
        return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in found.items()}

    def tables(self, key: str) -> list[tuple[str, Table]]:
        found: Mapping[str, Any] = self.take(key, dict, {})
        return [(name, Table(content, self.path(f"{key}.{name}"))) for name, content in found.items()]

    def end(self) -> None:
        for key in self._left:
            near = get_close_matches(key, self._known, n=1)
            meant = f"did you mean {near[0]}?" if near else f"known are {', '.join(self._known)}"
            raise InvalidSettings(f"unknown key {self.path(key)}; {meant}")

    def pattern(self, key: str) -> re.Pattern[str] | None:
        text = self.text(key)
        try:
            return re.compile(text) if text else None
        except re.error as wrong:
            raise InvalidSettings(f"{self.path(key)}: {text!r} is no regular expression: {wrong}") from None

    def wanted(self) -> Wanted:
        allow, deny = (self.pattern(key) for key in GROUPS)
        return Wanted(allow, deny)

    def template(self, key: str, extras: Mapping[str, str], usual: str | None = None) -> Template | None:
        text = self.take(key, str, usual)
        try:
            return None if text is None else checked(text, extras)
        except BadTemplate as wrong:
            raise InvalidSettings(f"{self.path(key)}: {wrong}") from None


def read_settings(content: Mapping[str, Any]) -> Settings:
    """Raises InvalidSettings."""
    table = Table(content, "")
    metrics: list[Any] = table.take("metrics", list, [*FAMILIES])
    for each in metrics:
        if each not in FAMILIES:
            raise InvalidSettings(f"metrics: unknown family {each!r}; there are {', '.join(FAMILIES)}")
    found = Settings(
        clusters=tuple(_cluster(name, each) for name, each in table.tables("clusters")),
        notifiers=tuple(_notifier(name, each) for name, each in table.tables("notifiers")),
        rules=_rules(Table(table.take("rules", dict, {}), "rules")),
        listen=table.take("listen", str, LISTEN),
        history=table.text("history"),
        interval_s=table.number("interval", INTERVAL_S, least=0.1, most=3_600),
        metrics=tuple(metrics),
        otlp_endpoint=_collector(table),
        otlp_interval_s=table.number("otlp-interval", OTLP_INTERVAL_S, least=0.1),
    )
    table.end()
    return found


def _rules(table: Table) -> Rules:
    usual = Rules()
    found = Rules(
        intervals=int(table.number("intervals", usual.intervals, least=2, most=1_000)),
        minimum_complete=table.number("minimum-complete", usual.minimum_complete, least=0, most=1),
        allowed_lag=int(table.number("allowed-lag", usual.allowed_lag, least=0)),
        min_distance_s=table.number("min-distance", usual.min_distance_s, least=0),
        expire_group_s=table.number("expire-group", usual.expire_group_s, least=1),
    )
    table.end()
    return found


def _collector(table: Table) -> str | None:
    found = table.text("otlp-endpoint")
    if found is not None and not is_http_url(found):
        raise InvalidSettings(f"{table.path('otlp-endpoint')}: expected {EXPECTED_URL}")
    return found


def _cluster(name: str, table: Table) -> ClusterSettings:
    connection = {key: table.text(key) for key in CONNECTION[:-1]}
    timeout = table.number("timeout", 0, least=0, most=3_600)
    found = ClusterSettings(
        name,
        {**connection, "timeout": timeout or None},
        table.texts("client"),
        table.take("read-commits", bool, True),
        table.wanted(),
    )
    table.end()
    return found


def _notifier(name: str, table: Table) -> NotifierSettings:
    is_mail = table.choice("kind", "mail" if table.has("server") else "http", ("http", "mail")) == "mail"
    threshold = table.choice("threshold", Status.WARN.name, (Status.WARN.name, Status.ERR.name))
    when = When(
        threshold=Status[threshold],
        every_s=table.number("interval", 60.0, least=1),
        once=table.take("send-once", bool, False),
        send_close=table.take("send-close", bool, True),
    )
    extras = table.texts("extras")
    sender: Sender = _mail(table, extras) if is_mail else _http(table, extras)
    found = NotifierSettings(name, sender, when, table.wanted())
    table.end()
    return found


def _http(table: Table, extras: Mapping[str, str]) -> HttpSender:
    opening = _url(table, "url-open", extras, table.needed("url-open"))
    assert opening is not None, "its text is there"
    closing = _url(table, "url-close", extras, table.text("url-close")) or opening
    return HttpSender(
        Call(opening, table.take("method-open", str, "POST"), table.template("template-open", extras)),
        Call(closing, table.take("method-close", str, "POST"), table.template("template-close", extras)),
        _headers(table),
        extras,
        table.number("timeout", 5.0, least=0.1),
    )


def _headers(table: Table) -> dict[str, str]:
    """What HTTP can't say is told here, without its value, which may be a password: errors of sending are logged."""
    found = table.texts("headers")
    for name, value in found.items():
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise InvalidSettings(f"{table.path('headers')}.{name!r}: expected a header of HTTP, one line of Latin-1")
    return found


def _url(table: Table, key: str, extras: Mapping[str, str], text: str | None) -> Template | None:
    if text is None:
        return None
    if not text.startswith(("http://", "https://")):
        raise InvalidSettings(f"{table.path(key)}: expected http:// or https://")
    try:
        return checked(text, extras)
    except BadTemplate as wrong:
        raise InvalidSettings(f"{table.path(key)}: {wrong}") from None


def _mail(table: Table, extras: Mapping[str, str]) -> MailSender:
    tls = table.choice("tls", "none", TLS)
    to: Any = table.take("to", (str, list), [])
    people = [to] if isinstance(to, str) else [*map(str, to)]
    if not people:
        raise InvalidSettings(f"{table.path('to')} is missing")
    sender = table.needed("from")
    for key, people_of_key in (("from", [sender]), ("to", people)):
        if not can_be_written_to(people_of_key):
            raise InvalidSettings(f"{table.path(key)}: expected addresses of mail, such as team@example.org")
    return MailSender(
        server=table.needed("server"),
        port=int(table.number("port", 465 if tls == "tls" else 25, least=1, most=65_535)),
        sender=sender,
        to=tuple(people),
        subject=table.template("subject", extras, SUBJECT) or Template(SUBJECT),
        body=table.template("template", extras),
        tls=tls,
        username=table.text("username"),
        password=table.text("password"),
        extras=extras,
        timeout_s=table.number("timeout", 10.0, least=0.1),
    )
