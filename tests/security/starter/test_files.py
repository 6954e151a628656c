"""The folder of --secure: made once, used again, and its certificate renewed in time."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from moldau.security.starter.files import ADMIN, BROKER, StarterFiles, prepared

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def contents(files: StarterFiles) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in files.folder.iterdir()}


def made(folder: Path, *, hosts: Sequence[str] = ("127.0.0.1",), now: datetime = NOW) -> StarterFiles:
    return prepared(folder / "security", hosts=hosts, now=now)


def test_nobody_else_can_read_what_is_secret(tmp_path: Path) -> None:
    files = made(tmp_path)
    assert stat.S_IMODE(files.folder.stat().st_mode) == 0o700
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in files.folder.iterdir()}
    secret = dict.fromkeys(("ca.key", "server.pem", "admin.password", "broker.password"), 0o600)
    assert modes == {"ca.pem": 0o644, **secret}
    assert files.password(ADMIN) != files.password(BROKER)
    assert len(files.password(ADMIN)) >= 32
    assert files.password(ADMIN) not in repr(files)


def test_a_second_start_finds_everything(tmp_path: Path) -> None:
    before = contents(made(tmp_path))
    assert contents(made(tmp_path, now=NOW + timedelta(days=300))) == before


def test_a_certificate_that_ends_soon_is_made_again_by_the_same_authority(tmp_path: Path) -> None:
    before = contents(made(tmp_path))
    after = contents(made(tmp_path, now=NOW + timedelta(days=380)))
    assert {name for name in after if after[name] != before[name]} == {"server.pem"}


def test_a_new_host_gets_into_the_certificate(tmp_path: Path) -> None:
    before = contents(made(tmp_path))
    wanted = ("b1.example.org", "10.0.0.7", "0.0.0.0")
    after = contents(made(tmp_path, hosts=wanted))
    assert after["server.pem"] != before["server.pem"]
    assert contents(made(tmp_path, hosts=wanted)) == after


def test_a_damaged_certificate_is_made_again(tmp_path: Path) -> None:
    files = made(tmp_path)
    files.server.write_text("nothing of it is left")
    made(tmp_path)
    assert b"BEGIN CERTIFICATE" in files.server.read_bytes()
