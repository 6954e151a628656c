"""Debian's packages for programs that tests need: installed by root, by one process at a time, else not at all."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

INSTALL_S_MAX = 280
LOCK = Path(tempfile.gettempdir()) / f"moldau-apt-{os.getuid()}.lock"


def install(*packages: str, is_there: Callable[[], bool]) -> bool:
    """Whether it is there then. Two test processes at once would find apt's own lock taken, and give up."""
    if is_there():
        return True
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return False
    with LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_there():
            wait = "-o DPkg::Lock::Timeout=120"
            names = " ".join(packages)
            line = f"apt-get update -q; apt-get install {wait} -q -y --no-install-recommends {names}"
            variables = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
            subprocess.run(line, shell=True, env=variables, capture_output=True, timeout=INSTALL_S_MAX, check=False)
    return is_there()
