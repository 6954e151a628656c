"""A real Prometheus on a free port: the one on the PATH, or Debian's package, unpacked into a cache."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError

from tests.apache_kafka import free_ports
from tests.clients.toolchains import built, run

START_S_MAX = 60.0
STOP_S_MAX = 30.0


def is_available() -> bool:
    return bool(shutil.which("prometheus") or (shutil.which("apt-get") and shutil.which("dpkg")))


def program(name: str) -> str:
    """`prometheus` or `promtool`."""
    installed = shutil.which(name)
    if installed:
        return installed

    def build(target: Path) -> None:
        run("apt-get", "download", "prometheus", directory=target)
        (package,) = target.glob("*.deb")
        run("dpkg", "-x", str(package), str(target), directory=target)

    return str(built("prometheus", [], build) / "usr" / "bin" / name)


def promtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program("promtool"), *arguments], capture_output=True, text=True, timeout=60, check=False)


@dataclass(frozen=True, slots=True)
class Prometheus:
    url: str

    def ask(self, path: str, parameters: Mapping[str, str]) -> Any:
        """The data of an answer; what Prometheus takes for no question is an assertion with its words."""
        question = urllib.parse.urlencode(parameters)
        try:
            with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{question}", timeout=20) as answer:
                return json.load(answer)["data"]
        except HTTPError as refused:
            with refused:
                raise AssertionError(f"{parameters}: {refused.read().decode()}") from None

    def query(self, expr: str) -> list[Any]:
        found: list[Any] = self.ask("query", {"query": expr})["result"]
        return found

    def values(self, label: str, metric: str) -> list[str]:
        """As Grafana fills a variable by `label_values(metric, label)`."""
        found: list[str] = self.ask(f"label/{label}/values", {"match[]": metric})
        return found


@contextmanager
def scraping(folder: Path, targets: Mapping[str, str], *, rules: Path | None = None) -> Iterator[Prometheus]:
    """Each target of HOST:PORT by its job, every second."""
    jobs = [{"job_name": job, "static_configs": [{"targets": [target]}]} for job, target in targets.items()]
    every = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config = {"global": every, "scrape_configs": jobs, "rule_files": [str(rules)] if rules else []}
    path = folder / "prometheus.yml"
    path.write_text(json.dumps(config))  # which is YAML, too
    (port,) = free_ports(1)
    command = [
        program("prometheus"), f"--config.file={path}", f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}", "--log.level=error",
    ]  # fmt: skip
    with (folder / "output.txt").open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    try:
        found = Prometheus(f"http://127.0.0.1:{port}")
        _wait_until_ready(found, process, folder / "output.txt")
        yield found
    finally:
        process.terminate()
        process.wait(STOP_S_MAX)


def _wait_until_ready(found: Prometheus, process: subprocess.Popen[bytes], output: Path) -> None:
    deadline_s = time.monotonic() + START_S_MAX
    while True:
        assert process.poll() is None, output.read_text()
        try:
            with urllib.request.urlopen(f"{found.url}/-/ready", timeout=5):
                return
        except (URLError, OSError):
            assert time.monotonic() < deadline_s, output.read_text()
            time.sleep(0.1)
