"""TLS and SASL on kazoo's connections, and who may read and write the nodes. All of it runs on kazoo's thread."""

from __future__ import annotations

import secrets
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from kazoo.exceptions import KazooException
from kazoo.protocol.serialization import SASL
from kazoo.security import CREATOR_ALL_ACL, READ_ACL_UNSAFE

from moldau.security.sasl.client_login import ClientCredentials, LoginFailed
from moldau.security.sasl.digest_md5 import DIGEST_MD5, DigestMd5Client
from moldau.security.sasl.mechanism import Response, SaslClient, SaslError
from moldau.security.tls.contexts import LoadedTls
from moldau.store.tree.layout import HEAD

SERVICE: Final = "zookeeper/zk-sasl-md5"  # ZooKeeper's servers have this name for DIGEST-MD5, whatever their hosts are
NONCE_BYTES: Final = 24
TOKENS_MAX: Final = 5  # of a login: DIGEST-MD5 takes two, GSSAPI three


class NotTrusted(Exception):
    """The two ends do not trust each other; the text says why, and holds no secret."""


@dataclass(frozen=True, slots=True)
class User:
    """Who logs in by DIGEST-MD5."""

    name: str
    password: str = field(repr=False)
    mechanism: str = field(default=DIGEST_MD5, init=False)

    def begin(self, _host: str) -> SaslClient:
        return DigestMd5Client(self.name, self.password, SERVICE, secrets.token_hex(NONCE_BYTES))


@dataclass(frozen=True, slots=True)
class Login:
    """One that is to be made, with its first token, for which a KDC may be asked for longer than a session lasts."""

    mechanism: str
    first: Response | None


@dataclass(frozen=True, slots=True)
class ZookeeperSecurity:
    tls: Callable[[], LoadedTls] | None = None
    user: User | ClientCredentials | None = None
    sets_acl: bool = False
    """Whether new nodes can be written by those alone who are known by the same name, or certificate."""

    def secured(self, plain: socket.socket, host: str, timeout_s: float) -> socket.socket:
        if self.tls is None:
            return plain
        try:
            plain.settimeout(timeout_s)
            return self.tls().context.wrap_socket(plain, server_hostname=host)
        except (ssl.SSLError, ValueError) as wrong:
            plain.close()
            raise NotTrusted(f"TLS: {_reason(wrong)}") from None
        except OSError:
            plain.close()
            raise

    def acl(self, path: str) -> list[Any] | None:
        """Of a new node, by its path below the chroot; None for kazoo's own, which is open to all.

        Passwords' verifiers are in the metadata log, so that nobody else may read it: Apache Kafka hides its users too.
        """
        if not self.sets_acl:
            return None
        is_hidden = path == HEAD or path.startswith(f"{HEAD}/")
        return [*CREATOR_ALL_ACL] if is_hidden else [*CREATOR_ALL_ACL, *READ_ACL_UNSAFE]

    def begin_login(self, host: str) -> Login:
        """Before there is a connection. NotTrusted if there is nothing to log in with."""
        assert self.user is not None, "only who has a name logs in"
        try:
            return Login(self.user.mechanism, self.user.begin(host).evaluate(b""))
        except SaslError as wrong:
            raise NotTrusted(f"SASL {self.user.mechanism}: {wrong}") from None
        except LoginFailed as wrong:
            raise NotTrusted(str(wrong)) from None


def log_in(login: Login, connection: Any, timeout_s: float) -> None:
    """By kazoo's own calls, without the library that it would take for it. NotTrusted if it is refused."""
    response = login.first
    try:
        for xid in range(1, TOKENS_MAX + 1):
            if response is None:
                return
            response = response.next.evaluate(_exchanged(connection, response.token, xid, timeout_s))
    except (SaslError, _Refused) as wrong:
        raise NotTrusted(f"SASL {login.mechanism}: {wrong}") from None
    raise NotTrusted(f"SASL {login.mechanism}: the server goes on asking")


class _Refused(Exception):
    pass


def _exchanged(connection: Any, token: bytes, xid: int, timeout_s: float) -> bytes:
    """A server that refuses a login says so, or just hangs up."""
    try:
        connection._submit(SASL(token), timeout_s, xid)
        header, buffer, offset = connection._read_header(timeout_s)
    except KazooException as wrong:
        raise _Refused(f"the login was refused ({type(wrong).__name__})") from None
    if header.err or header.xid != xid:
        raise _Refused(f"the login was refused (error {header.err})")
    challenge: bytes = SASL.deserialize(buffer, offset)[0]
    return challenge or b""


def _reason(wrong: Exception) -> str:
    if isinstance(wrong, ssl.SSLCertVerificationError):
        return f"the server's certificate is not accepted: {wrong.verify_message.rstrip('.')}"
    if isinstance(wrong, ssl.SSLError) and wrong.reason:
        return wrong.reason.replace("_", " ").lower()
    return "the handshake failed" if isinstance(wrong, ssl.SSLError) else str(wrong)
