"""The folder of --secure: made once, used again, and its certificate renewed in time."""

from __future__ import annotations

import errno
import stat
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from moldau.security.starter import files as starter_files
from moldau.security.starter.files import ADMIN, BROKER, StarterFiles, UnusableFolder, prepared

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


def test_an_authority_that_clients_know_is_never_replaced(tmp_path: Path) -> None:
    """Whoever takes its key offline signs no more here; what is there goes on as long as it is good."""
    files = made(tmp_path)
    files.authority_key.unlink()
    before = contents(files)
    assert contents(made(tmp_path)) == before
    with pytest.raises(UnusableFolder, match=r"server\.pem has to be made again, and .*ca\.key is not there"):
        made(tmp_path, hosts=("b1.example.org",))
    assert contents(files) == before


def test_a_lost_authority_is_not_made_up_for_by_another(tmp_path: Path) -> None:
    files = made(tmp_path)
    files.authority.unlink()
    with pytest.raises(UnusableFolder, match=r"ca\.pem is missing; put it back, or remove"):
        made(tmp_path)
    files.server.unlink()
    made(tmp_path)
    assert files.authority.exists()


@pytest.mark.parametrize("last", ["ca.key", "ca.pem", "server.pem"])
def test_a_start_that_a_full_disk_ended_is_gone_on_with(
    last: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = starter_files.write

    def full(path: Path, content: bytes, *, mode: int = starter_files.SECRET) -> None:
        if path.name == last:
            raise OSError(errno.ENOSPC, "No space left on device")
        whole(path, content, mode=mode)

    with monkeypatch.context() as patched:
        patched.setattr(starter_files, "write", full)
        with pytest.raises(OSError, match="No space left"):
            made(tmp_path)
    files = made(tmp_path)
    assert starter_files._is_trusted(files)


def test_a_certificate_of_another_authority_is_made_again(tmp_path: Path) -> None:
    files, others = made(tmp_path), made(tmp_path / "other")
    others.server.replace(files.server)
    made(tmp_path)
    assert starter_files._is_trusted(files)


@pytest.mark.parametrize("content", [b"", b" \n", b"\xff\xfe\n", b"two\nlines\n"])
def test_a_password_file_without_a_password_is_named(tmp_path: Path, content: bytes) -> None:
    files = made(tmp_path)
    files.password_file(ADMIN).write_bytes(content)
    with pytest.raises(UnusableFolder, match=r"admin\.password holds no password"):
        made(tmp_path)


def test_a_new_password_has_not_been_taken_over(tmp_path: Path) -> None:
    files = made(tmp_path)
    for user in (ADMIN, BROKER):
        files.has_taken(user)
    files.password_file(ADMIN).unlink()
    made(tmp_path)
    assert [files.taken_file(user).exists() for user in (ADMIN, BROKER)] == [False, True]
