"""Profiles, a project's file and the environment: what wins, and what is wrong in them."""

from __future__ import annotations

import os
import stat
import subprocess
import tomllib
from pathlib import Path

import pytest

from moldau.cli.failures import UsageError
from moldau.cli.profiles import defaults, project_file, user_file
from tests.cli.conftest import command

USER = """
profile = "staging"
[profiles.staging]
bootstrap-server = "staging:9092"
timeout = 10
[profiles.staging.client]
"security.protocol" = "ssl"
[profiles.other]
bootstrap-server = "other:9092"
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    file = user_file({"HOME": str(tmp_path)})
    file.parent.mkdir(parents=True)
    file.write_text(USER)
    return tmp_path


def servers(home: Path, *, wanted: str | None = None, folder: Path | None = None, **environment: str) -> str | None:
    known = defaults({"HOME": str(home), **environment}, folder or home, wanted)
    return known.value("bootstrap-server")


def test_what_wins(home: Path) -> None:
    project = home / "project"
    (project / "src").mkdir(parents=True)
    (project / "moldau.toml").write_text('bootstrap-server = "project:9092"\noutput = "wide"\n')
    assert servers(home) == "staging:9092"
    assert servers(home, wanted="other") == "other:9092"
    assert servers(home, MOLDAU_PROFILE="other") == "other:9092"
    assert servers(home, MOLDAU_PROFILE="other", MOLDAU_BOOTSTRAP_SERVERS="variable:1") == "variable:1"
    known = defaults({"HOME": str(home)}, project / "src")
    assert (known.value("bootstrap-server"), known.value("output")) == ("staging:9092", "wide")
    user_file({"HOME": str(home)}).unlink()
    assert servers(home, folder=project / "src") == "project:9092"


@pytest.mark.parametrize(
    "project",
    [
        '[profiles.staging]\nbootstrap-server = "evil:9092"\nregistry = "http://evil"',
        '[profiles.staging]\ncommand-config = "evil.properties"',
        '[profiles.staging.client]\n"security.protocol" = "plaintext"',
        'command-config = "evil.properties"\nregistry = "http://evil"',
        '[client]\n"bootstrap.servers" = "evil:9092"\n"enable.ssl.certificate.verification" = false',
    ],
)
def test_a_projects_file_gets_no_passwords_of_the_users_profiles(home: Path, project: str) -> None:
    """Whoever goes into a folder and asks anything there, even by Tab, reads what somebody wrote into it."""
    place = home / "downloaded"
    place.mkdir()
    (place / "moldau.toml").write_text(f'profile = "staging"\ntimeout = 3\noutput = "wide"\n{project}')
    known = defaults({"HOME": str(home)}, place)
    assert {key: each.value for key, each in known.settings.items()} == {
        "bootstrap-server": "staging:9092",
        "timeout": "10",
        "output": "wide",
    }
    assert known.client == {"security.protocol": "ssl"}


def test_client_properties_of_a_profile(home: Path) -> None:
    assert defaults({"HOME": str(home)}, home).client == {"security.protocol": "ssl"}


def test_a_projects_file_is_looked_for_up_to_the_repository(tmp_path: Path) -> None:
    (tmp_path / "moldau.toml").touch()
    inner = tmp_path / "repository" / "folder"
    inner.mkdir(parents=True)
    assert project_file(inner) == tmp_path / "moldau.toml"
    (tmp_path / "repository" / ".git").mkdir()
    assert project_file(inner) is None


def test_its_files_are_beside_it(home: Path) -> None:
    (home / "moldau.toml").write_text('command-config = "client.properties"\n')
    user_file({"HOME": str(home)}).unlink()
    known = defaults({"HOME": str(home)}, home)
    assert known.value("command-config") == str(home / "client.properties")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("bootstrap-servers = 'x'", "unknown key bootstrap-servers; did you mean bootstrap-server?"),
        ("[profiles.a]\nzzz = 1", "unknown key profiles.a.zzz; known are bootstrap-server"),
        ("[profiles.a]\nclient = 1", "profiles.a.client: expected a table"),
        ("profiles = 1", "profiles: expected tables"),
        ("profile = 1", "profile: expected the name"),
        ("= 1", "Invalid statement"),
    ],
)
def test_a_wrong_file_is_named_with_its_key(home: Path, text: str, told: str) -> None:
    file = home / "moldau.toml"
    file.write_text(text)
    with pytest.raises(UsageError) as failed:
        defaults({"HOME": str(home)}, home)
    assert str(failed.value).startswith(f"{file}: {told}")


def test_an_unknown_profile_is_one_line(home: Path) -> None:
    with pytest.raises(UsageError, match="there is no profile 'stagin'; did you mean staging"):
        servers(home, wanted="stagin")


def run(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MOLDAU_", "XDG_"))}
    environment["HOME"] = str(home)
    return subprocess.run(
        command(*arguments), env=environment, cwd=home, capture_output=True, text=True, timeout=60, check=False
    )


def test_a_profile_from_its_making_to_its_end(tmp_path: Path, bootstrap: str) -> None:
    """A key with dots is a client property, and nobody else reads the file: there may be passwords."""
    made = run(tmp_path, "profile", "create", "über", f"bootstrap-server={bootstrap}", "output=json", "client.id=me")
    assert (made.returncode, made.stderr) == (0, "")
    file = user_file({"HOME": str(tmp_path)})
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    settings = {"bootstrap-server": bootstrap, "output": "json", "client": {"client.id": "me"}}
    assert tomllib.loads(file.read_text())["profiles"] == {"über": settings}
    assert run(tmp_path, "--profile", "über", "topics", "list").stdout.startswith("[")
    assert run(tmp_path, "profile", "use", "über").returncode == 0
    assert run(tmp_path, "topics", "list").stdout.startswith("[")
    assert run(tmp_path, "topics", "list", "-o", "table").stdout.startswith("TOPIC")
    assert run(tmp_path, "profile", "list", "-o", "csv").stdout.splitlines()[1].startswith(f"über,*,{bootstrap},")
    assert run(tmp_path, "profile", "delete", "über").returncode == 0
    assert tomllib.loads(file.read_text()) == {}


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    logins = ("sasl.password=hush", "basic.auth.user.info=me:hush", "registry=https://me:hush@registry:8081")
    run(tmp_path, "profile", "create", "p", *logins)
    shown = run(tmp_path, "profile", "show", "p").stdout
    assert "hush" not in shown
    assert shown.count("(hidden)") == len(logins)
    assert "https://(hidden)@registry:8081" in shown


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("create", "p", "outptu=json"), "unknown key 'outptu'; did you mean output?"),
        (("create", "p", "output"), "expected KEY=VALUE"),
        (("use", "nobody"), "there is no profile 'nobody'"),
        (("delete", "nobody"), "there is no profile 'nobody'"),
    ],
    ids=" ".join,
)
def test_wrong_words_change_nothing(tmp_path: Path, arguments: tuple[str, ...], told: str) -> None:
    finished = run(tmp_path, "profile", *arguments)
    assert finished.returncode in (1, 2)
    assert told in finished.stderr
    assert finished.stderr.count("\n") == 1
    assert not user_file({"HOME": str(tmp_path)}).exists()


def test_a_wrong_default_names_its_place(tmp_path: Path) -> None:
    (tmp_path / "moldau.toml").write_text('output = "tabel"\n')
    finished = run(tmp_path, "profile", "list")
    assert finished.returncode == 2
    assert f"{tmp_path}/moldau.toml: output: 'tabel' is no format; did you mean table?" in finished.stderr
