"""The edge to MIT's library through python-gssapi, which is an extra of this package: contexts, credentials, errors.

Nothing here is for the event loop. An acceptor reads its keytab and writes to the replay cache; an initiator asks the
KDC, which may take seconds to say nothing. The calls work without the interpreter's lock, on any number of threads.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final, TypeVar

from moldau.security.sasl.mechanism import SaslError

T = TypeVar("T")

INSTALL: Final = (
    "GSSAPI needs python-gssapi, which is not installed: pip install 'moldau[gssapi]', after apt-get install gcc "
    "libkrb5-dev, or dnf install gcc krb5-devel"
)
ANY_PRINCIPAL: Final = "*"  # Java's: whichever service of the key table the client has a ticket for


class KerberosUnusable(Exception):
    """There is no library, no keytab, or no key in it. The text is one line."""


@dataclass(frozen=True, slots=True)
class Keytab:
    """A principal and the file with its key."""

    principal: str
    path: str


def default_realm() -> str:
    """That of krb5.conf; empty if it has none, and then no principal is of it."""
    raw = _raw()
    try:
        known = raw.canonicalize_name(_principal(raw, "moldau"), raw.MechType.kerberos)
        return _shown(raw, known).partition("@")[2]
    except raw.GSSError:
        return ""


@dataclass(frozen=True, slots=True)
class Acceptor:
    """The key of a listener. The key table is read for each login, so that one with a newer key is taken at once."""

    credentials: Any = field(repr=False)

    @classmethod
    def of(cls, keytab: Keytab) -> Acceptor:
        """KerberosUnusable if the key can't be read."""
        raw = _raw()
        principal = None if keytab.principal == ANY_PRINCIPAL else keytab.principal
        return cls(_acquired(raw, {b"keytab": os.fsencode(keytab.path)}, principal, "accept"))

    def accept(self) -> Context:
        """A new context, for one client."""
        raw = _raw()
        return Context(raw, lambda context, token: raw.accept_sec_context(token, self.credentials, context))


@dataclass(frozen=True, slots=True)
class Initiator:
    """Somebody who logs in elsewhere: with tickets of a cache that others keep, or with a key.

    Tickets that were had for a key stay in this process. The library fetches them again after half of their time.
    """

    principal: str | None
    """None for whoever the tickets of the cache are for."""
    keytab: str | None = None
    ticket_cache: str | None = None
    """None for the one that the environment or krb5.conf name."""

    @classmethod
    def by_keytab(cls, keytab: Keytab) -> Initiator:
        return cls(keytab.principal, keytab.path)

    def begin(self, service: str, host: str) -> Context:
        """A new context, for one server. SaslError if the KDC gives no ticket."""
        raw = _raw()
        try:
            credentials = _acquired(raw, self._store(), self.principal, "initiate")
            target = raw.import_name(f"{service}@{host}".encode(), raw.NameType.hostbased_service)
        except (KerberosUnusable, raw.GSSError) as wrong:
            raise SaslError(_reason(wrong)) from None
        # The other end proves who it is, too; the connection is protected by TLS or not at all, as in Kafka.
        flags = [raw.RequirementFlag.mutual_authentication, raw.RequirementFlag.integrity]

        def step(context: Any, token: bytes) -> Any:
            return raw.init_sec_context(
                target, credentials, context, raw.MechType.kerberos, flags, input_token=token or None
            )

        return Context(raw, step)

    def check(self) -> None:
        """KerberosUnusable if there is no library, or no key. The KDC is not asked: it may come later."""
        if self.keytab is None or self.principal is None:
            _raw()
        else:
            Acceptor.of(Keytab(self.principal, self.keytab))

    def _store(self) -> dict[bytes, bytes]:
        if self.keytab is None:
            return {} if self.ticket_cache is None else {b"ccache": os.fsencode(self.ticket_cache)}
        path = os.fsencode(self.keytab)
        cache = hashlib.sha256(f"{self.principal} ".encode() + path).hexdigest()
        return {b"client_keytab": path, b"ccache": f"MEMORY:moldau-{cache}".encode()}


class Context:
    """One exchange's security context, which changes with each token and is of use to one thread at a time."""

    __slots__ = ("_context", "_raw", "_step", "is_complete", "is_mutual", "peer")

    def __init__(self, raw: Any, step: Callable[[Any, bytes], Any]) -> None:
        self._raw = raw
        self._step = step
        self._context: Any = None
        self.is_complete = False
        self.is_mutual = False
        self.peer = ""
        """An acceptor's: the principal of the client, once the context is complete."""

    def step(self, token: bytes) -> bytes:
        """What to send back, if anything. SaslError if the token proves nothing."""
        assert not self.is_complete, "a complete context takes no tokens"
        result = self._tried(lambda: self._step(self._context, token))
        self._context = result.context
        self.is_complete = not result.more_steps
        if self.is_complete:
            self.is_mutual = self._raw.RequirementFlag.mutual_authentication in result.flags
            initiator = getattr(result, "initiator_name", None)
            self.peer = "" if initiator is None else self._tried(lambda: _shown(self._raw, initiator))
        return result.token or b""

    def wrap(self, message: bytes) -> bytes:
        """With a checksum, and readable."""
        wrapped: bytes = self._tried(lambda: self._raw.wrap(self._context, message, False)).message
        return wrapped

    def unwrap(self, token: bytes) -> bytes:
        message: bytes = self._tried(lambda: self._raw.unwrap(self._context, token)).message
        return message

    def _tried(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except self._raw.GSSError as wrong:
            raise SaslError(_reason(wrong)) from None


def _raw() -> Any:
    """KerberosUnusable where python-gssapi, or the library below it, is not installed."""
    try:
        raw = import_module("gssapi.raw")
    except (ImportError, OSError):
        raise KerberosUnusable(INSTALL) from None
    if not hasattr(raw, "acquire_cred_from"):
        raise KerberosUnusable(
            "GSSAPI needs MIT Kerberos: the library that python-gssapi was built with can't name a key table"
        )
    return raw


def _acquired(raw: Any, store: dict[bytes, bytes], principal: str | None, usage: str) -> Any:
    try:
        name = None if principal is None else _principal(raw, principal)
        return raw.acquire_cred_from(store, name, None, [raw.MechType.kerberos], usage).creds
    except raw.GSSError as wrong:
        raise KerberosUnusable(_reason(wrong)) from None


def _principal(raw: Any, name: str) -> Any:
    return raw.import_name(name.encode(), raw.NameType.kerberos_principal)


def _shown(raw: Any, name: Any) -> str:
    """SaslError for one that is no UTF-8: with a sign in place of wrong bytes, two principals would look alike."""
    text: bytes = raw.display_name(name, False).name
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise SaslError("a principal whose name is no UTF-8") from None


def _reason(wrong: Any) -> str:
    """Kerberos' own words, without the general ones of GSSAPI around them where there are both."""
    if isinstance(wrong, KerberosUnusable):
        return str(wrong)
    codes = [(wrong.min_code, False)] if wrong.min_code else [(wrong.maj_code, True)]
    return "; ".join(text for code, is_major in codes for text in wrong.get_all_statuses(code, is_major))
