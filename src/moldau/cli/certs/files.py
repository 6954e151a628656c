"""Writing certificates and keys: whole or not at all, readable by their owner only, and nothing is lost by accident."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from moldau.cli.failures import CommandFailed, UsageError

SECRET, PUBLIC = 0o600, 0o644
_STRANGE = re.compile(r"[^A-Za-z0-9._-]")
AUTHORITY, AUTHORITY_KEY = "ca.pem", "ca.key"


def file_stem(name: str, *, option: str) -> str:
    """A file name for a host or a user, as an option named it: *.example.org is _.example.org."""
    stem = _STRANGE.sub("_", name).lstrip(".") or "_"
    if stem == "ca":
        raise UsageError(f"Invalid value {name!r} for {option}: the authority's files have that name")
    return stem


def write_files(files: Mapping[Path, tuple[bytes, int]], *, force: bool) -> None:
    """All of them with their modes, after a look that none is there. A reader sees the old or the new content."""
    there = [str(path) for path in files if path.exists()]
    if there and not force:
        raise CommandFailed(f"{', '.join(there)} exists already; --force replaces it")
    for path, (content, mode) in files.items():
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _write(path, content, mode)
        except OSError as wrong:
            raise CommandFailed(f"{path}: {wrong.strerror or wrong}") from None


def _write(path: Path, content: bytes, mode: int) -> None:
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        os.fchmod(descriptor, mode)  # whatever the umask says
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        beside.replace(path)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise


def read_file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as wrong:
        raise CommandFailed(f"{path}: {wrong.strerror or wrong}") from None
