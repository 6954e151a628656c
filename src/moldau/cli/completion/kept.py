"""Answers that are kept for the next Tab, in files of the user's cache."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

FILES_MAX = 200  # of all tools and clusters: the oldest go


def folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path(os.environ.get("HOME") or Path.home(), ".cache"), "moldau")


def _path(what: str, key: Any) -> Path:
    from hashlib import blake2b

    told = json.dumps([str(Path(__file__)), key]).encode(errors="surrogateescape")
    return folder() / "completion" / f"{what}-{blake2b(told, digest_size=12).hexdigest()}"


def kept(what: str, key: Any, *, newer_than_ns: int = 0) -> Any:
    """None if there is nothing, or nothing so new."""
    path = _path(what, key)
    try:
        if path.stat().st_mtime_ns < newer_than_ns:
            return None
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None


def keep(what: str, key: Any, value: Any) -> None:
    """For nobody else to read: it may be names of groups and users. What can't be kept is asked for again."""
    path = _path(what, key)
    beside = path.with_suffix(f".{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            json.dump(value, file)
        os.replace(beside, path)
        _forget_oldest(path.parent)
    except OSError:
        beside.unlink(missing_ok=True)


def _forget_oldest(place: Path) -> None:
    files = sorted(place.iterdir(), key=lambda each: each.stat().st_mtime_ns)
    for each in files[:-FILES_MAX]:
        each.unlink(missing_ok=True)
