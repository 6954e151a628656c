"""The folder of a start with --secure: made once, kept beside the data, and used again by every start after that."""

from __future__ import annotations

import os
import secrets
import socket
import ssl
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from ipaddress import ip_address
from pathlib import Path

from moldau.security.tls.certificates import Certificate, read_certificate

FOLDER = "security"  # of a data directory
ADMIN, BROKER = "admin", "broker"
SECRET, PUBLIC, PRIVATE_FOLDER = 0o600, 0o644, 0o700
PASSWORD_BYTES = 24
RENEWED_S = 30 * 86_400  # before its end: a broker that is started once a month never meets it
LOCAL = ("localhost", "127.0.0.1", "::1")
EVERYWHERE = ("", "0.0.0.0", "::")
HANDSHAKE_TURNS_MAX = 4
OF_TIME = (9, 10)  # not yet, and no longer valid: judged by its dates, with the caller's time


class UnusableFolder(Exception):
    """What is there can't be used, and is not replaced either. The text names the file, and holds no secret."""


@dataclass(frozen=True, slots=True)
class StarterFiles:
    folder: Path

    @property
    def authority(self) -> Path:
        return self.folder / "ca.pem"

    @property
    def authority_key(self) -> Path:
        return self.folder / "ca.key"

    @property
    def server(self) -> Path:
        """The brokers' key and certificate."""
        return self.folder / "server.pem"

    def password_file(self, user: str) -> Path:
        return self.folder / f"{user}.password"

    def password(self, user: str) -> str:
        path = self.password_file(user)
        try:
            found = path.read_text("utf-8").strip()
        except UnicodeDecodeError:
            found = ""
        if not found.isprintable() or not found:
            raise UnusableFolder(f"{path} holds no password; write one line of text into it, or remove it")
        return found

    def taken_file(self, user: str) -> Path:
        """There since the cluster has taken the password over: before that, whatever it knows is somebody else's."""
        return self.folder / f"{user}.taken"

    def has_taken(self, user: str) -> None:
        write(self.taken_file(user), b"")


def prepared(folder: Path, *, hosts: Iterable[str], now: datetime) -> StarterFiles:
    """What is missing is made; a certificate that ends soon, or lacks one of the hosts, is made again.

    Raises OSError; UnusableFolder, and InvalidRequest for an authority whose files are damaged.

    Passwords are those of the users' beginning: whoever changes one in the cluster has to know it from then on.
    """
    files = StarterFiles(folder.absolute())
    files.folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    files.folder.chmod(PRIVATE_FOLDER)
    for user in (ADMIN, BROKER):
        if not files.password_file(user).exists():
            files.taken_file(user).unlink(missing_ok=True)
            write(files.password_file(user), secrets.token_urlsafe(PASSWORD_BYTES).encode() + b"\n")
        files.password(user)
    names = list(dict.fromkeys([*LOCAL, socket.gethostname(), *(each for each in hosts if each not in EVERYWHERE)]))
    if not files.authority.exists() or not _is_good(files, names, now):
        _certify(files, names, now)
    return files


def _is_good(files: StarterFiles, hosts: list[str], now: datetime) -> bool:
    try:
        found = _certificate(files.server)
    except (OSError, ValueError):
        return False
    covers = set(map(_spelled, hosts)) <= found.alternative_names
    return covers and found.not_after_s - now.timestamp() > RENEWED_S and _is_trusted(files)


def _is_trusted(files: StarterFiles) -> bool:
    """Whether a client that knows the authority takes the server: a handshake of the two, without a network.

    By the times of this machine's clock, which is the one that decides about certificates everywhere.
    """
    try:
        own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        own.load_cert_chain(files.server)
        theirs = ssl.create_default_context(cafile=files.authority)
        theirs.check_hostname = False
    except (OSError, ValueError):
        return False
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [theirs.wrap_bio(back, there), own.wrap_bio(there, back, server_side=True)]
    for _ in range(HANDSHAKE_TURNS_MAX):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLCertVerificationError as wrong:
                return wrong.verify_code in OF_TIME
            except ssl.SSLError:
                return False
    return True


def _spelled(host: str) -> str:
    """As a certificate has it."""
    try:
        return f"IP:{ip_address(host)}"
    except ValueError:
        return f"DNS:{host}"


def _certificate(path: Path) -> Certificate:
    from moldau.security.tls import pem

    for block in pem.blocks(path.read_text("utf-8", "replace")):
        if block.is_certificate:
            return read_certificate(block.der())
    raise ValueError(f"{path} holds no certificate")


def _certify(files: StarterFiles, hosts: list[str], now: datetime) -> None:
    """An authority that clients may know already is never replaced. Each file is written when those before it are."""
    from moldau.security.tls.issuing import load_identity, new_authority, new_server

    if files.authority.exists():
        if not files.authority_key.exists():
            raise UnusableFolder(
                f"{files.server} has to be made again, and {files.authority_key} is not there to sign it"
            )
        authority = load_identity(files.authority_key.read_bytes(), files.authority.read_bytes())
    elif files.server.exists():
        raise UnusableFolder(f"{files.authority} is missing; put it back, or remove {files.server} to begin anew")
    else:
        authority = new_authority(name="Moldau CA", now=now)
        write(files.authority_key, authority.key_pem())
        write(files.authority, authority.certificate_pem(), mode=PUBLIC)
    made = new_server(authority, hosts=hosts, now=now)
    write(files.server, made.key_pem() + made.certificate_pem())


def write(path: Path, content: bytes, *, mode: int = SECRET) -> None:
    """Whole or not at all, whatever the umask says."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    try:
        os.fchmod(descriptor, mode)
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        beside.replace(path)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise
