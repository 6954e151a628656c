"""Who may come in to a registry that logs in to its cluster: somebody has to say it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from moldau.cli.failures import UsageError
from moldau.cli.registry.command import parse
from moldau.cli.registry.settings import Wanted, settled
from moldau.web.logins import hashed

STORE = "kafkastore.security.protocol=SASL_SSL\nkafkastore.sasl.mechanism=PLAIN\n"
LOGIN = STORE + "kafkastore.sasl.username=registry\nkafkastore.sasl.password=secret\n"
CERTIFICATE = "kafkastore.security.protocol=SSL\nkafkastore.ssl.keystore.location=/nowhere/own.pem\n"


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))


def settings(tmp_path: Path, text: str, *arguments: str) -> Wanted:
    file = tmp_path / "schema-registry.properties"
    file.write_text(text)
    return settled(parse(["--config", str(file), *arguments]))


@pytest.mark.parametrize("text", [LOGIN, CERTIFICATE])
def test_it_lends_its_login_to_nobody_in_silence(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match="the registry logs in to the cluster, and whoever reaches it"):
        settings(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "arguments"),
    [("", ()), (LOGIN, ("--authentication", "none")), (f"{LOGIN}authentication.method=NONE\n", ())],
)
def test_everybody_may_come_in_if_that_is_meant(tmp_path: Path, text: str, arguments: tuple[str, ...]) -> None:
    assert settings(tmp_path, text, *arguments).users is None


def test_users_may_come_in(tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text(f"anna: {hashed('secret')}, admin\n")
    for arguments in ((), ("--authentication", "basic")):
        found = settings(tmp_path, LOGIN, "--users", str(users), *arguments)
        assert found.users is not None
        assert [*found.users] == ["anna"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--authentication", "magic"), "--authentication magic is not supported; expected NONE, BASIC or PASS"),
        (("--authentication", "basic"), "needs --users"),
        (("--authentication", "none", "--users", "some"), "lets everybody in, .* say one of them"),
        (("--authentication", "passthrough"), "security.protocol is no SASL"),
    ],
)
def test_what_it_refuses(tmp_path: Path, arguments: tuple[str, ...], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        settings(tmp_path, "", *arguments)


def test_users_of_the_cluster_may_come_in(tmp_path: Path) -> None:
    for text, arguments in (
        (LOGIN, ("--authentication", "passthrough")),
        (f"{LOGIN}authentication.method=PASSTHROUGH\nauthentication.users.file=/nowhere\n", ()),
    ):
        found = settings(tmp_path, text, *arguments)
        assert (found.is_passthrough, found.users) == (True, None)
    with pytest.raises(UsageError, match=r"lets the cluster's users in, .* say one of them"):
        settings(tmp_path, LOGIN, "--authentication", "passthrough", "--users", "some")
    with pytest.raises(UsageError, match=r"sasl.mechanism=OAUTHBEARER; expected one of PLAIN"):
        settings(tmp_path, LOGIN.replace("PLAIN", "OAUTHBEARER"), "--authentication", "passthrough")


def test_a_client_with_a_certificate_is_not_everybody(tmp_path: Path) -> None:
    for name in ("server.pem", "key.pem", "ca.pem"):
        (tmp_path / name).write_text("")
    paths = ("--tls-certificate", "server.pem", "--tls-key", "key.pem", "--tls-client-ca", "ca.pem")
    arguments = [str(tmp_path / each) if each.endswith(".pem") else each for each in paths]
    assert settings(tmp_path, LOGIN, *arguments).users is None
    with pytest.raises(UsageError, match="whoever reaches it"):
        settings(tmp_path, LOGIN, *arguments[:4])


def test_the_refusal_is_one_line() -> None:
    pairs = ("security.protocol=sasl_plaintext", "sasl.mechanism=PLAIN", "sasl.username=a", "sasl.password=b")
    command = [sys.executable, "-P", "-m", "moldau", "registry", "--port", "0"]
    command += [word for each in pairs for word in ("-X", each)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "--users FILE, --authentication passthrough (logins of the cluster), or --authentication none" in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 2
