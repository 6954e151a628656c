"""The folder of a start with --secure: made once, kept beside the data, and used again by every start after that."""

from __future__ import annotations

import os
import secrets
import socket
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
        return self.password_file(user).read_text("utf-8").strip()


def prepared(folder: Path, *, hosts: Iterable[str], now: datetime) -> StarterFiles:
    """What is missing is made; a certificate that ends soon, or lacks one of the hosts, is made again.

    Raises OSError, and InvalidRequest for an authority whose files are damaged.

    Passwords are those of the users' beginning: whoever changes one in the cluster has to know it from then on.
    """
    files = StarterFiles(folder.absolute())
    files.folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    files.folder.chmod(PRIVATE_FOLDER)
    for user in (ADMIN, BROKER):
        if not files.password_file(user).exists():
            write(files.password_file(user), secrets.token_urlsafe(PASSWORD_BYTES).encode() + b"\n")
    names = list(dict.fromkeys([*LOCAL, socket.gethostname(), *(each for each in hosts if each not in EVERYWHERE)]))
    if not files.authority_key.exists() or not files.authority.exists() or not _is_good(files.server, names, now):
        _certify(files, names, now)
    return files


def _is_good(path: Path, hosts: list[str], now: datetime) -> bool:
    try:
        found = _certificate(path)
    except (OSError, ValueError):
        return False
    return found.not_after_s - now.timestamp() > RENEWED_S and set(map(_spelled, hosts)) <= found.alternative_names


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
    from moldau.security.tls.issuing import load_identity, new_authority, new_server

    if files.authority_key.exists() and files.authority.exists():
        authority = load_identity(files.authority_key.read_bytes(), files.authority.read_bytes())
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
