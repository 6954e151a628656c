"""The guide from zero: its commands, taken out of it and run one after the other."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sysconfig
import time
import venv
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

CHECKOUT = Path(__file__).parents[2]
GUIDE = CHECKOUT / "docs" / "guides" / "spark-from-zero.md"
WAIT_S_MAX = 240.0


class Commands(NamedTuple):
    install: str
    start: str
    create: str
    produce: str
    follow: str


@pytest.fixture
def commands() -> Commands:
    return Commands(*(found.strip() for found in re.findall(r"```sh\n(.*?)```", GUIDE.read_text(), re.DOTALL)))


class Terminal:
    """A shell of a new user: a folder, an environment with nothing in it, and what the machine has."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        venv.create(folder / "venv", with_pip=True, symlinks=True)
        # What would be downloaded is lent by the environment of the tests: everything but the project itself.
        site = next((folder / "venv" / "lib").glob("python*")) / "site-packages"
        (site / "lent.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
        self.port = free_port()
        kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYSPARK_PYTHON")}
        self.environment = {
            **kept,
            "PATH": f"{folder / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "MOLDAU_BOOTSTRAP_SERVERS": f"127.0.0.1:{self.port}",
            "MOLDAU_HOME": str(folder / "home"),
        }

    def run(self, command: str) -> str:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=WAIT_S_MAX,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @contextmanager
    def running(self, command: str, output: Path) -> Iterator[subprocess.Popen[bytes]]:
        with output.open("wb") as file:
            process = subprocess.Popen(
                ["bash", "-c", command],
                cwd=self.folder,
                env=self.environment,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            yield process
        finally:
            os.killpg(process.pid, signal.SIGINT)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def wait_for(condition: Callable[[], bool], what: Path) -> None:
    deadline = time.monotonic() + WAIT_S_MAX
    while not condition():
        assert time.monotonic() < deadline, what.read_text()
        time.sleep(0.2)


def counts(output: Path) -> list[tuple[tuple[str, str], int]]:
    """Minute and page of each line, and how often it was looked at so far."""
    lines = re.findall(r"^(\S+T\S+)\s+(/page-\d)\s+(\d+)$", output.read_text(), re.MULTILINE)
    return [((minute, page), int(clicks)) for minute, page, clicks in lines]


def has_grown(output: Path) -> bool:
    """Whether a count was seen, and later a higher one of the same minute and page."""
    seen: dict[tuple[str, str], int] = {}
    return any(clicks > seen.setdefault(which, clicks) for which, clicks in counts(output))


@pytest.mark.timeout(900)
@pytest.mark.xdist_group("spark")
def test_five_commands_lead_to_a_live_count(commands: Commands, tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    install = commands.install.replace("moldau[spark]", str(CHECKOUT))
    assert install != commands.install
    terminal.run(f"{install} --quiet --no-deps --no-build-isolation --force-reinstall --disable-pip-version-check")
    where = terminal.run("python -c 'import moldau; print(moldau.__file__)'")
    assert where.startswith(str(tmp_path)), "the installed package is the one that runs"
    with ExitStack() as stack:
        broker, follow = tmp_path / "broker.out", tmp_path / "follow.out"
        stack.enter_context(terminal.running(f"{commands.start} --port {terminal.port}", broker))
        wait_for(lambda: "listening" in broker.read_text(), broker)
        assert terminal.run(commands.create) == "created clicks\n"
        stack.enter_context(terminal.running(commands.produce, tmp_path / "produce.out"))
        wait_for(lambda: bool(terminal.run("moldau consume clicks --from-beginning -e")), broker)
        stack.enter_context(terminal.running(f"exec {commands.follow}", follow))
        wait_for(lambda: has_grown(follow), follow)
    assert follow.read_text().splitlines()[0].split() == ["minute", "page", "clicks"]
    assert "Traceback" not in follow.read_text()
