"""The code of the guides, taken out of them so that tests can run it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.brokers import PROJECT

RUN_S_MAX = 120.0
ADDRESS = "localhost:9092"


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", (PROJECT / page).read_text(), re.MULTILINE | re.DOTALL)


def run(command: list[str], *, cwd: Path, bootstrap: str = "") -> str:
    """What a command prints, which has to succeed; `moldau` is this checkout's, and talks to that broker."""
    bin_folder = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}"}
    if bootstrap:
        environment["MOLDAU_BOOTSTRAP_SERVERS"] = bootstrap
    finished = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=RUN_S_MAX, check=False
    )
    assert finished.returncode == 0, f"{finished.stdout}\n{finished.stderr}"
    return finished.stdout


def run_python(code: str, *, cwd: Path, bootstrap: str = "") -> str:
    return run([sys.executable, "-W", "error", "-c", code.replace(ADDRESS, bootstrap or ADDRESS)], cwd=cwd)


def run_shell(code: str, *, cwd: Path, bootstrap: str) -> str:
    return run(["bash", "-eo", "pipefail", "-c", code], cwd=cwd, bootstrap=bootstrap)
