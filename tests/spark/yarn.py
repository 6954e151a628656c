"""A real YARN: a ResourceManager and one NodeManager on free ports. Their jars come through Maven, once per machine.

Where the system lets us, the node has process ids of its own, so that whatever runs in its containers is, as on a
cluster, a process of another machine: known by its lock's age, and stopped by a note in the store.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.apache_kafka import SHORT_LIVED_JVM, free_ports
from tests.clients.toolchains import built, run, sources

SOURCE = Path(__file__).parent / "yarn_servers"
SERVERS = "org.apache.hadoop.yarn.server"
OPENED = ("java.lang", "java.util", "java.io", "java.net", "java.nio")
START_S_MAX = 240.0
STOP_S_MAX = 30.0
LOGGING = """\
log4j.rootLogger=INFO,out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d %p %c{1}: %m%n
"""
OWN_PROCESS_IDS = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")


def is_available() -> bool:
    return shutil.which("java") is not None and shutil.which("mvn") is not None


def jars() -> Path:
    def build(target: Path) -> None:
        shutil.copy(SOURCE / "pom.xml", target)
        libs = target / "libs"
        run("mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={libs}", directory=target)

    return built("yarn", sources(SOURCE), build) / "libs"


@dataclass(frozen=True, slots=True)
class Yarn:
    folder: Path
    url: str

    @property
    def environment(self) -> dict[str, str]:
        return {"HADOOP_CONF_DIR": str(self.folder / "conf")}

    @property
    def logs(self) -> Path:
        """What the servers wrote, and below it what containers did."""
        return self.folder / "logs"

    def ask(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.url}/ws/v1/cluster/{path}", timeout=START_S_MAX) as answer:
            return json.loads(answer.read())

    def applications(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (self.ask("apps")["apps"] or {}).get("app", [])
        return sorted(found, key=lambda each: each["startedTime"])

    def attempts(self, application: str) -> int:
        return len(self.ask(f"apps/{application}/appattempts")["appAttempts"]["appAttempt"])

    def kill_driver(self, application: str) -> None:
        """The JVM of its newest attempt, as if the machine ran out of memory."""
        os.kill(max(self._masters(application)), signal.SIGKILL)

    def _masters(self, application: str) -> list[int]:
        found = []
        for process, words in command_lines().items():
            is_master = any(word.endswith("deploy.yarn.ApplicationMaster") for word in words)
            if is_master and words[0].endswith("java") and any(application in word for word in words):
                found.append(process)
        return found


def command_lines() -> dict[int, list[str]]:
    """Of all processes that run."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found[int(path.parent.name)] = path.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue  # it ended meanwhile
    return found


@contextmanager
def running_yarn(folder: Path) -> Iterator[Yarn]:
    names = ("address", "scheduler.address", "resource-tracker.address", "admin.address", "webapp.address")
    places = [f"resourcemanager.{name}" for name in names]
    places += [f"nodemanager.{name}" for name in ("address", "localizer.address", "webapp.address")]
    addresses = {f"yarn.{place}": f"127.0.0.1:{port}" for place, port in zip(places, free_ports(8), strict=True)}
    yarn = Yarn(folder, f"http://{addresses['yarn.resourcemanager.webapp.address']}")
    _configure(folder, addresses)
    with ExitStack() as stack:
        servers = [
            stack.enter_context(_server(folder, "resourcemanager.ResourceManager", ())),
            stack.enter_context(_server(folder, "nodemanager.NodeManager", _own_process_ids())),
        ]
        _wait_for_node(yarn, servers)
        yield yarn


def _own_process_ids() -> tuple[str, ...]:
    if shutil.which(OWN_PROCESS_IDS[0]) is None:
        return ()
    tried = subprocess.run([*OWN_PROCESS_IDS, "true"], capture_output=True, check=False)
    return OWN_PROCESS_IDS if tried.returncode == 0 else ()


def _configure(folder: Path, addresses: Mapping[str, str]) -> None:
    conf = folder / "conf"
    conf.mkdir(parents=True)
    (folder / "logs").mkdir()
    (conf / "log4j.properties").write_text(LOGGING)
    site = {
        **addresses,
        "yarn.resourcemanager.hostname": "127.0.0.1",
        "yarn.resourcemanager.am.max-attempts": "3",
        "yarn.resourcemanager.connect.retry-interval.ms": "500",
        "yarn.nodemanager.hostname": "127.0.0.1",
        "yarn.nodemanager.local-dirs": str(folder / "local"),
        "yarn.nodemanager.log-dirs": str(folder / "logs" / "containers"),
        "yarn.nodemanager.resource.memory-mb": "4096",
        "yarn.nodemanager.resource.cpu-vcores": "4",
        "yarn.nodemanager.vmem-check-enabled": "false",
        # Keeps also the script that starts a container among the logs, with all that is on its command line.
        "yarn.nodemanager.delete.debug-delay-sec": "3600",
        "yarn.nodemanager.disk-health-checker.enable": "false",
        "yarn.scheduler.minimum-allocation-mb": "128",
    }
    _write(conf / "yarn-site.xml", site)
    _write(conf / "core-site.xml", {"fs.defaultFS": "file:///", "hadoop.tmp.dir": str(folder / "tmp")})
    queue = "yarn.scheduler.capacity"
    shares = {f"{queue}.root.default.capacity": "100", f"{queue}.maximum-am-resource-percent": "1.0"}
    _write(conf / "capacity-scheduler.xml", {f"{queue}.root.queues": "default", **shares})


def _write(path: Path, settings: Mapping[str, str]) -> None:
    lines = (f"<property><name>{key}</name><value>{value}</value></property>\n" for key, value in settings.items())
    path.write_text(f"<configuration>\n{''.join(lines)}</configuration>\n")


@contextmanager
def _server(folder: Path, name: str, prefix: tuple[str, ...]) -> Iterator[subprocess.Popen[bytes]]:
    opened = [word for each in OPENED for word in ("--add-opens", f"java.base/{each}=ALL-UNNAMED")]
    command = [*prefix, "java", *SHORT_LIVED_JVM, *opened, "-cp", f"{folder / 'conf'}:{jars()}/*", f"{SERVERS}.{name}"]
    environment = {**os.environ, "HADOOP_CONF_DIR": str(folder / "conf"), "HADOOP_HOME": str(folder)}
    with (folder / "logs" / f"{name}.txt").open("wb") as output:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        yield process
    finally:
        # With process ids of its own all that it started goes with it; else it ends its containers when asked to.
        process.send_signal(signal.SIGKILL if prefix else signal.SIGTERM)
        try:
            process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for_node(yarn: Yarn, servers: list[subprocess.Popen[bytes]]) -> None:
    deadline_s = time.monotonic() + START_S_MAX
    while True:
        try:
            nodes = (yarn.ask("nodes")["nodes"] or {}).get("node", [])
            if [each for each in nodes if each["state"] == "RUNNING"]:
                return
        except OSError:
            pass
        told = "\n".join(path.read_text(errors="replace")[-4000:] for path in yarn.logs.glob("*.txt"))
        assert all(server.poll() is None for server in servers), told
        assert time.monotonic() < deadline_s, told
        time.sleep(0.5)
