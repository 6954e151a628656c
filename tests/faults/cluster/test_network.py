"""The network of a run: packets are lost one way and in silence, come late, connections break, and all of it ends."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.faults.cluster.network import INSIDE, Network

PROJECT = Path(__file__).parents[3]
PORT = 9000
SERVER = f"""
import socket, threading
listener = socket.create_server(("0.0.0.0", {PORT}))
print("listening", flush=True)
def echo(connection):
    try:
        while data := connection.recv(1000):
            connection.sendall(data)
    except OSError:
        pass
while True:
    threading.Thread(target=echo, args=(listener.accept()[0],), daemon=True).start()
"""
CLIENT = """
import socket, sys, time
begun = time.monotonic()
try:
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), 1.5) as connection:
        connection.sendall(b"x")
        answer = connection.recv(10)
        print("answered", time.monotonic() - begun, flush=True)
        if len(sys.argv) > 3:
            connection.settimeout(20)
            connection.recv(10)
            print("ended", flush=True)
except TimeoutError:
    print("nothing", time.monotonic() - begun, flush=True)
except ConnectionError as wrong:
    print("broken", type(wrong).__name__, flush=True)
"""


def may_have_namespaces() -> bool:
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        return False
    return subprocess.run(["unshare", "--net", "--mount", "true"], capture_output=True, check=False).returncode == 0


needs_namespaces = pytest.mark.skipif(not may_have_namespaces(), reason="network namespaces are not allowed here")


def trial() -> None:
    """Runs inside namespaces of its own; prints what a client on host a hears of a server on host b."""
    network = Network(["a", "b"])
    network.build()
    command = network.command("b", [sys.executable, "-c", SERVER])
    with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        server.stdout.readline()
        asking = network.command("a", [sys.executable, "-c", CLIENT, network.address("b"), str(PORT)])

        def ask(what: str) -> None:
            done = subprocess.run(asking, capture_output=True, text=True, check=True)
            print(what, done.stdout, end="", flush=True)

        ask("at-first")
        network.cut("a", "b")
        ask("nothing-out")
        network.heal()
        network.cut("b", "a")
        ask("nothing-in")
        network.heal()
        network.slow_down("b", 0.2)
        ask("slow")
        network.heal()
        ask("healed")
        with subprocess.Popen([*asking, "stay"], stdout=subprocess.PIPE, text=True) as waiting:
            assert waiting.stdout is not None
            waiting.stdout.readline()
            network.reset("b")
            print("reset", waiting.stdout.readline(), end="", flush=True)
        server.kill()


@needs_namespaces
def test_what_a_network_can_suffer() -> None:
    code = "from tests.faults.cluster.test_network import trial; trial()"
    done = subprocess.run(
        ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, "-c", code],
        capture_output=True, text=True, cwd=PROJECT, env={**os.environ, INSIDE: "1"}, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    heard = {words[0]: words[1:] for words in map(str.split, done.stdout.splitlines())}
    assert [heard[what][0] for what in ("at-first", "nothing-out", "nothing-in", "slow", "healed", "reset")] == [
        "answered", "nothing", "nothing", "answered", "answered", "broken",
    ]  # fmt: skip
    assert float(heard["nothing-out"][1]) > 1.4, "an unreachable host says nothing"
    assert float(heard["slow"][1]) > 0.75, "two round trips, 0.2 s each way"
    assert heard["reset"][1] == "ConnectionResetError"


@needs_namespaces
def test_nothing_is_left_when_a_run_is_killed(tmp_path: Path) -> None:
    before = set(Path("/run/netns").iterdir()) if Path("/run/netns").exists() else set()
    command = [
        sys.executable, "-m", "tests.faults.cluster", "--brokers", "1", "--seconds", "60", "--directory", str(tmp_path),
    ]  # fmt: skip
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        deadline_s = time.monotonic() + 120
        while not (tmp_path / "c1.jsonl").exists():
            assert time.monotonic() < deadline_s
            assert run.poll() is None
            time.sleep(0.1)
        assert working_in(tmp_path)
        run.kill()
    while working_in(tmp_path):
        assert time.monotonic() < deadline_s
        time.sleep(0.1)
    assert (set(Path("/run/netns").iterdir()) if Path("/run/netns").exists() else set()) == before


def working_in(directory: Path) -> list[str]:
    """Processes that have the directory in their command lines."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes()
        except OSError:
            continue
        if str(directory).encode() in words and int(path.parent.name) != os.getpid():
            found.append(path.parent.name)
    return found
