"""`moldau users` against a running broker; the tests hold for Apache Kafka too."""

from __future__ import annotations

import json
import os
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic

import pytest

from tests.cli.conftest import RUN_S_MAX, Tool, command, environment

Done = Callable[..., str]
SEEN_S_MAX = 30.0  # Apache Kafka answers before it shows what it did


@pytest.fixture
def user(tool: Tool) -> Iterator[str]:
    name = f"alice-{uuid.uuid4().hex[:8]}"
    yield name
    tool("users", "delete", "--yes", name)


@pytest.fixture
def secret(tmp_path: Path) -> str:
    path = tmp_path / "password"
    path.write_text("opensesame\nthis is no part of it\n")
    return str(path)


def until_listed(tool: Tool, user: str, wanted: dict[str, int]) -> None:
    deadline_s = monotonic() + SEEN_S_MAX
    while True:
        ended = tool("users", "list", user, "-o", "json")
        rows = json.loads(ended.stdout) if ended.returncode == 0 else []
        listed = {row["mechanism"]: row["iterations"] for row in rows}
        if listed == wanted:
            return
        assert monotonic() < deadline_s, f"{user} has {listed}"


def test_users_are_added_listed_changed_and_deleted(tool: Tool, done: Done, user: str, secret: str) -> None:
    assert done("users", "add", user, "--password-file", secret) == f"added {user} SCRAM-SHA-512\n"
    until_listed(tool, user, {"SCRAM-SHA-512": 4096})
    other = ("--mechanism", "SCRAM-SHA-256", "--iterations", "8192", "--password-file", secret)
    assert done("users", "add", user, *other) == f"added {user} SCRAM-SHA-256\n"
    until_listed(tool, user, {"SCRAM-SHA-256": 8192, "SCRAM-SHA-512": 4096})
    header, *lines = done("users", "list").splitlines()
    assert header.split() == ["USER", "MECHANISM", "ITERATIONS"]
    assert [user, "SCRAM-SHA-256", "8192"] in [line.split() for line in lines]
    told = done("users", "password", user, "--password-file", "-", stdin="another\n")
    assert told == f"changed {user} SCRAM-SHA-256 SCRAM-SHA-512\n"
    until_listed(tool, user, {"SCRAM-SHA-256": 8192, "SCRAM-SHA-512": 4096})
    assert done("users", "delete", "--yes", user, "--mechanism", "SCRAM-SHA-256") == f"deleted {user} SCRAM-SHA-256\n"
    until_listed(tool, user, {"SCRAM-SHA-512": 4096})
    refused = tool("users", "delete", user)
    assert (refused.returncode, "it takes --yes; nothing was done" in refused.stderr) == (2, True)
    assert done("users", "delete", "--yes", user) == f"deleted {user} SCRAM-SHA-512\n"
    until_listed(tool, user, {})


def test_a_user_who_is_there_is_not_added_again(tool: Tool, done: Done, user: str, secret: str) -> None:
    done("users", "add", user, "--password-file", secret)
    until_listed(tool, user, {"SCRAM-SHA-512": 4096})
    ended = tool("users", "add", user, "--password-file", secret)
    advice = f"change it with: moldau users password {user}"
    message = f"user {user!r} has a password of SCRAM-SHA-512 already; {advice}"
    assert (ended.returncode, ended.stderr) == (1, f"moldau users: {message}\n")


def test_a_generated_password_is_printed(done: Done, user: str) -> None:
    added, password = done("users", "add", user, "--generate").splitlines()
    assert added == f"added {user} SCRAM-SHA-512"
    assert len(password.removeprefix("password ")) >= 32


def test_a_password_from_the_environment(bootstrap: str, user: str) -> None:
    ended = subprocess.run(
        command("users", "add", user),
        env={**environment(bootstrap), "MOLDAU_USER_PASSWORD": "from outside"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=RUN_S_MAX,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, f"added {user} SCRAM-SHA-512\n", "")


def test_on_a_terminal_it_asks_twice_and_shows_nothing(bootstrap: str, user: str) -> None:
    """The terminal is this test's: getpass opens the one that controls the process."""
    pid, terminal = os.forkpty()
    if pid == 0:
        words = command("users", "add", user)
        os.execve(words[0], words, environment(bootstrap))
    said = b""
    for prompt in (b"New password: ", b"The same again: "):
        while not said.endswith(prompt):
            said += os.read(terminal, 4096)
        os.write(terminal, b"opensesame\n")
    while chunk := rest_of(terminal):
        said += chunk
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    os.close(terminal)
    assert b"opensesame" not in said
    assert f"added {user} SCRAM-SHA-512".encode() in said


def rest_of(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # Linux says so when the other end has closed
        return b""


NO_PASSWORD = "there is no password; give it by --password-file FILE, MOLDAU_USER_PASSWORD or --generate"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("add nobody", 2, NO_PASSWORD),
        ("add nobody --password-file -", 2, "the password is empty"),
        ("add nobody --password-file /nowhere", 2, "--password-file: cannot read /nowhere: No such file or directory"),
        ("password nobody", 1, "there is no user 'nobody'; add one with: moldau users add nobody"),
        ("delete nobody", 1, "there is no user 'nobody'; add one with: moldau users add nobody"),
        ("list nobody", 1, "there is no user 'nobody'"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tool: Tool, words: str, code: int, message: str) -> None:
    ended = tool("users", *words.split())
    assert (ended.returncode, ended.stdout, ended.stderr) == (code, "", f"moldau users: {message}\n")


def test_the_help_has_examples_and_no_password_option(tool: Tool) -> None:
    assert "moldau users add alice" in tool("users", "--help").stdout
    assert "--password PASSWORD" not in tool("users", "add", "--help").stdout
