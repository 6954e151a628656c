"""`moldau verify` as a user runs it: what holds is told, what does not is seen, and nothing is left behind."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import moldau
from moldau.cli.verify.catalogue import SCENARIOS
from moldau.cli.verify.clusters.hooks import checked
from moldau.cli.verify.outcome import Skipped, Wrong
from moldau.cli.verify.running import _uninterrupted
from tests.cli.conftest import Tool, command
from tests.cli.verify.conftest import descendants, is_alive, leftovers, report, verify

QUICK = ("--duration", "1", "--rounds", "1", "-o", "json")
WAIT_S_MAX = 60.0


def until(is_so: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + WAIT_S_MAX
    while not is_so():
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


def test_an_election_on_brokers_of_its_own(tmp_path: Path) -> None:
    finished = verify("leader-election", "--keep", *QUICK, folder=tmp_path)
    assert finished.returncode == 0, finished.stderr
    found = report(finished)["leader-election"]
    assert found["verdict"] == "held"
    assert found["acknowledged"] == found["read"] > 100
    assert (found["lost"], found["unread"], found["duplicated"], found["out_of_order"]) == (0, 0, 0, 0)
    (election_ms,), (acknowledged_ms,) = found["figures"]["election_ms"], found["figures"]["acknowledged_ms"]
    assert 0 < election_ms <= acknowledged_ms + 10
    assert acknowledged_ms <= found["figures"]["unacknowledged_ms"][0] + 50
    assert json.loads(finished.stdout)["settings"]["producer"]["retries"]["value"] > 0
    (folder,) = tmp_path.iterdir()
    assert "kill broker" in finished.stderr
    assert f"data of the brokers is in {folder}" in finished.stderr
    assert [*folder.rglob("*.log")]


def test_harm_is_seen(given: moldau.EmbeddedCluster) -> None:
    """Records are deleted, written twice and out of order by the command that should restart a broker."""
    servers = given.bootstrap_servers
    mischief = shlex.join([sys.executable, "-m", "tests.cli.verify.mischief", servers]) + " {id}"
    finished = verify("rolling-restart", *QUICK, "--yes", "-b", servers, "--restart-broker", mischief)
    found = report(finished)["rolling-restart"]
    assert (finished.returncode, found["verdict"]) == (1, "FAILED"), finished.stderr
    assert found["lost"] > 0
    assert (found["duplicated"], found["out_of_order"]) == (1, 1)
    assert len(found["complaints"]) == 3
    assert leftovers(servers) == ([], [])


def test_what_needs_hands_is_skipped_with_the_reason(given: moldau.EmbeddedCluster) -> None:
    finished = verify("-b", given.bootstrap_servers, "--yes", "leader-election", "paused-broker", "-o", "json")
    assert finished.returncode == 1
    assert finished.stderr.endswith("moldau verify: nothing was tried: every scenario was skipped\n")
    value, _ = json.JSONDecoder().raw_decode(finished.stdout)
    reasons = {each["scenario"]: each["skipped"] for each in value["scenarios"]}
    assert reasons == {
        "leader-election": "needs --stop-broker and --start-broker, or a terminal to ask at",
        "paused-broker": "needs --pause-broker and --resume-broker, or a terminal to ask at",
    }
    assert leftovers(given.bootstrap_servers) == ([], [])


def test_commands_get_the_id_and_have_to_succeed(tmp_path: Path) -> None:
    stop, start = f"echo {{id}} > {tmp_path}/{{id}}", "echo no host {id} >&2; exit 7"
    hooks = checked({"stop-broker": stop, "start-broker": start})
    hooks.do("stop-broker", 4)
    assert (tmp_path / "4").read_text() == "4\n"
    with pytest.raises(Wrong, match="--start-broker ended with 7 for broker 4: no host 4"):
        hooks.do("start-broker", 4)
    with pytest.raises(Skipped, match="needs --pause-broker, or a terminal"):
        hooks.do("pause-broker", 4)


def test_a_broker_that_a_clean_up_starts_can_be_ended(tmp_path: Path) -> None:
    """What a process ignores, its children ignore, and Java leaves it so: SIGTERM would not end such a broker."""
    hooks = checked({"start-broker": f"grep SigIgn /proc/self/status > {tmp_path}/{{id}}"})
    with _uninterrupted():
        os.kill(os.getpid(), signal.SIGINT)
        hooks.do("start-broker", 4)
    ignored = int((tmp_path / "4").read_text().split()[1], 16)
    assert not ignored & (1 << signal.SIGTERM - 1 | 1 << signal.SIGINT - 1 | 1 << signal.SIGHUP - 1)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["asked to end", "killed"])
def test_nothing_outlives_a_run(tmp_path: Path, how: signal.Signals) -> None:
    """Brokers, clients and folders go, also when nobody is left to end them."""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    running = subprocess.Popen(
        command("verify", "preferred-election", "--duration", "60"), stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip
    assert running.stderr is not None
    with running.stderr as told:
        while "begins" not in told.readline():
            assert running.poll() is None
        until(lambda: len(descendants(running.pid)) >= 5)  # three brokers, a producer, a consumer
        started = descendants(running.pid)
        running.send_signal(how)
        assert running.wait(WAIT_S_MAX) == (130 if how == signal.SIGTERM else -signal.SIGKILL)
    until(lambda: not any(map(is_alive, started)))
    until(lambda: not [*tmp_path.iterdir()])


def test_ctrl_c_removes_what_was_made(given: moldau.EmbeddedCluster) -> None:
    running = subprocess.Popen(
        command("verify", "-b", given.bootstrap_servers, "--yes", "client-lost", "--duration", "60"),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    until(lambda: bool(leftovers(given.bootstrap_servers)[1]))
    running.send_signal(signal.SIGINT)
    out, told = running.communicate(timeout=WAIT_S_MAX)
    assert (running.returncode, out) == (130, "")
    assert "interrupted; cleaning up" in told
    assert "Traceback" not in told
    assert leftovers(given.bootstrap_servers) == ([], [])


def test_scenarios_are_listed(done: Callable[..., str]) -> None:
    lines = done("verify", "list").splitlines()
    assert [line.split()[0] for line in lines] == ["SCENARIO", *(each.name for each in SCENARIOS)]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["leader-elction"], "unknown scenario 'leader-elction'; did you mean leader-election?"),
        (["nothing-like-it"], "unknown scenario 'nothing-like-it'; there are leader-election, preferred-election,"),
        (["--brokers", "0"], "argument --brokers: '0' is no number; expected 1 to 9"),
        (["--duration", "-1"], "argument --duration: '-1' is no time; expected seconds, more than 0 and up to 3600"),
        (["--acks", "2"], "unknown value '2' of --acks; expected all, 1, 0"),
        (["--stop-broker", "kill {id}"], "--stop-broker: of a cluster that is given with -b"),
        (["-b", "localhost:1", "--brokers", "2"], "--brokers is for a cluster of ours"),
        (["-b", "localhost:1", "--keep"], "--keep is for a cluster of ours"),
        (["-b", "localhost:1", "--stop-broker", "kill"], "--stop-broker kill: expected a command with {id} in it"),
        (["--ratee", "2"], "unknown option --ratee; did you mean --rate?"),
    ],
)
def test_bad_use_is_one_line(tool: Tool, arguments: list[str], words: str) -> None:
    finished = tool("verify", *arguments)
    assert (finished.returncode, finished.stdout) == (2, "")
    assert words in finished.stderr
    assert len(finished.stderr.splitlines()) == 1


def test_a_cluster_is_not_touched_without_a_yes(given: moldau.EmbeddedCluster) -> None:
    finished = verify("-b", given.bootstrap_servers, "preferred-election")
    assert (finished.returncode, finished.stdout) == (2, "")
    assert "it takes --yes; nothing was done" in finished.stderr


def test_nobody_there_is_one_line(tool: Tool) -> None:
    finished = tool("verify", "-b", "127.0.0.1:1", "--yes")
    assert (finished.returncode, finished.stdout) == (1, "")
    assert finished.stderr == "moldau verify: no broker answers at 127.0.0.1:1; start one with: moldau start\n"
