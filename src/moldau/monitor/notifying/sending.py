"""By HTTP and by mail."""

from __future__ import annotations

import json
import smtplib
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from email.message import EmailMessage
from http.client import HTTPException
from string import Template
from typing import Any, Protocol
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from moldau.monitor.notifying.deciding import Event
from moldau.monitor.notifying.messages import as_json, as_text

JSON = "application/json"
WHY_CHARS_MAX = 200  # it may be a line of something that is no HTTP
VALUES = ("partitions", "result")  # are JSON by themselves


class NotSent(Exception):
    """The text says why."""


class Sender(Protocol):
    def send(self, event: Event, known: Mapping[str, str]) -> None:
        """Raises NotSent."""


class Unmoved(HTTPRedirectHandler):
    """A POST would be sent on as a GET without its body, and headers with passwords to whoever is named there."""

    def redirect_request(self, *_: Any) -> None:
        return None


@dataclass(frozen=True, slots=True)
class Call:
    """One HTTP request."""

    url: Template
    method: str = "POST"
    body: Template | None = None


@dataclass(frozen=True, slots=True)
class HttpSender:
    opening: Call
    closing: Call
    headers: Mapping[str, str] = field(default_factory=dict)
    extras: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = 5.0

    def send(self, event: Event, known: Mapping[str, str]) -> None:
        call = self.closing if event is Event.CLOSE else self.opening
        names = {**self.extras, **known}
        url = call.url.substitute({name: quote(value, safe="") for name, value in names.items()})
        headers = {"Content-Type": JSON, **self.headers}
        body = as_json(known) if call.body is None else call.body.substitute(_inside(names, headers["Content-Type"]))
        request = Request(url, body.encode(), headers, method=call.method)
        try:
            with build_opener(Unmoved).open(request, timeout=self.timeout_s):
                pass
        except HTTPError as wrong:
            with wrong:
                raise NotSent(f"{call.method} {shown_url(url)}: {wrong.code} {wrong.reason}") from None
        except (URLError, OSError, ValueError, HTTPException) as wrong:
            why = str(getattr(wrong, "reason", wrong)) or type(wrong).__name__
            raise NotSent(f"{call.method} {shown_url(url)}: {why[:WHY_CHARS_MAX]}") from None


def shown_url(url: str) -> str:
    """Whose it is. A webhook's path is its password, and logs and /v3/config are for more people than that is."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _inside(names: Mapping[str, str], content_type: str) -> dict[str, str]:
    """Texts as they stand between the quotes of a JSON body: a group may have quotes in its name."""
    if not content_type.startswith(JSON):
        return {**names}
    return {name: text if name in VALUES else json.dumps(text)[1:-1] for name, text in names.items()}


def can_be_written_to(people: Sequence[str]) -> bool:
    try:
        EmailMessage()["To"] = ", ".join(people)
    except Exception:  # the library fails at some texts in ways that it does not know of itself
        return False
    return True


@dataclass(frozen=True, slots=True)
class MailSender:
    server: str
    port: int
    sender: str
    to: tuple[str, ...]
    subject: Template
    body: Template | None = None
    tls: str = "none"
    """none, starttls or tls."""
    username: str | None = None
    password: str | None = None
    extras: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = 10.0

    def send(self, event: Event, known: Mapping[str, str]) -> None:
        names = {**self.extras, **known}
        message = EmailMessage()
        message["From"], message["To"] = self.sender, ", ".join(self.to)
        message["X-Moldau-Event"] = event.value
        # Group ids may hold line breaks, and a header may not.
        message["Subject"] = " ".join(self.subject.substitute(names).split())
        message.set_content(as_text(known) if self.body is None else self.body.substitute(names))
        try:
            with self._connected() as mail:
                if self.username is not None:
                    mail.login(self.username, self.password or "")
                mail.send_message(message)
        except (smtplib.SMTPException, OSError, ValueError) as wrong:  # ValueError: a password that is not ASCII
            raise NotSent(f"mail by {self.server}:{self.port}: {wrong}") from None

    def _connected(self) -> smtplib.SMTP:
        context = ssl.create_default_context()
        if self.tls == "tls":
            return smtplib.SMTP_SSL(self.server, self.port, timeout=self.timeout_s, context=context)
        mail = smtplib.SMTP(self.server, self.port, timeout=self.timeout_s)
        if self.tls == "starttls":
            try:
                mail.starttls(context=context)
            except (smtplib.SMTPException, OSError):
                mail.close()
                raise
        return mail
