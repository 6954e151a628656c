"""Apache Kafka 4.3.1 itself, as the oracle: its jars through Maven, its tools, and a broker of its own.

The jars are fetched once per machine. `KAFKA_HOME` may name a folder that already has them.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from types import TracebackType

VERSION = "4.3.1"
START_S_MAX = 90.0
STOP_S_MAX = 30.0
INSTALL_S_MAX = 900.0
# The serial collector and the first compiler only: these processes live for seconds.
SHORT_LIVED_JVM = ("-Xmx512M", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")

_POM = """\
<project><modelVersion>4.0.0</modelVersion>
<groupId>moldau</groupId><artifactId>oracle</artifactId><version>1</version><dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{version}</version></dependency>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId><version>{version}</version></dependency>
</dependencies></project>
"""
_LOG4J = """\
Configuration:
  Appenders: {Console: {name: out, target: SYSTEM_ERR, PatternLayout: {pattern: "%d %p %m (%c)%n"}}}
  Loggers: {Root: {level: WARN, AppenderRef: {ref: out}}}
"""


def available() -> bool:
    """Whether the oracle can run here: a Java runtime, and the jars or Maven to get them."""
    return shutil.which("java") is not None and (_installed() is not None or shutil.which("mvn") is not None)


def libs() -> Path:
    """The folder of all jars, fetched through Maven on the first call on a machine."""
    found = _installed()
    if found is not None:
        return found / "libs"
    home = _own_home()
    home.mkdir(parents=True, exist_ok=True)
    with _locked(home / ".lock"):
        if not (home / ".complete").exists():
            _install(home)
    return home / "libs"


def clients_jar() -> Path:
    """The jar with the message definitions, as `common/message/*.json`."""
    return libs() / f"kafka-clients-{VERSION}.jar"


def java_command(
    class_name: str, *args: str, jvm: Sequence[str] = SHORT_LIVED_JVM, classes: Path | None = None
) -> list[str]:
    """How to run one of Kafka's classes, for callers that manage the process on their own; `classes` are others."""
    jars = libs()
    log4j = _own_home() / "log4j2.yaml"
    if not log4j.exists():
        log4j.parent.mkdir(parents=True, exist_ok=True)
        _write_whole(log4j, _LOG4J)
    path = f"{jars}/*" if classes is None else f"{jars}/*:{classes}"
    return ["java", *jvm, f"-Dlog4j2.configurationFile={log4j}", "-cp", path, class_name, *args]


def tool(
    class_name: str, *args: str, stdin: str | None = None, timeout_s: float = 120.0
) -> subprocess.CompletedProcess[str]:
    """Run one of Kafka's command-line classes to its end; the caller judges its exit code and output."""
    return subprocess.run(
        java_command(class_name, *args), input=stdin, capture_output=True, text=True, timeout=timeout_s, check=False
    )


def free_ports(count: int) -> list[int]:
    """Ports that are free together at this moment."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


class ApacheKafka:
    """One broker with its controller (KRaft) on free loopback ports, for the length of a `with` block.

    `directory` holds its configuration, data and output; a temporary one is made, and removed, when none is given.
    A directory that was used before is started again as it is, on the port it had.
    `passwords`, by users, open a second listener that wants SASL, whose users may do what ACLs allow them; whoever
    comes by the first may do everything. `plugins` is a folder of classes that `properties` name.
    """

    def __init__(
        self,
        *,
        directory: Path | None = None,
        properties: Mapping[str, str] | None = None,
        passwords: Mapping[str, str] | None = None,
        plugins: Path | None = None,
    ) -> None:
        self.is_temporary = directory is None
        self.directory = Path(tempfile.mkdtemp(prefix="apache-kafka-")) if directory is None else directory
        self.properties = dict(properties or {})
        self.passwords = dict(passwords or {})
        self.plugins = plugins
        self.port = 0
        self.secured_port = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def secured_bootstrap(self) -> str:
        return f"127.0.0.1:{self.secured_port}"

    @property
    def data_directory(self) -> Path:
        return self.directory / "data"

    def __enter__(self) -> ApacheKafka:
        self.directory.mkdir(parents=True, exist_ok=True)
        try:
            self.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if self.is_temporary:
            shutil.rmtree(self.directory, ignore_errors=True)

    def start(self) -> None:
        free_port, secured_port, controller_port = free_ports(3)
        self.port, self.secured_port = self.port or free_port, self.secured_port or secured_port
        config = self.directory / "server.properties"
        config.write_text(self._config(controller_port))
        if not (self.data_directory / "meta.properties").exists():
            self._format(config)
        with (self.directory / "output.txt").open("ab") as output:
            self._process = subprocess.Popen(
                java_command("kafka.Kafka", str(config), classes=self.plugins),
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            )
        self._wait_until_it_answers()

    def stop(self) -> None:
        """A clean shutdown; a process that does not end in time is killed."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def kill(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def _config(self, controller_port: int) -> str:
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"{self.properties.get('node.id', '1')}@127.0.0.1:{controller_port}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller_port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": str(self.data_directory),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            **(self._secured(controller_port) if self.passwords else {}),
            **self.properties,
        }
        return "".join(f"{key}={value}\n" for key, value in settings.items())

    def _secured(self, controller_port: int) -> dict[str, str]:
        plain, secured = f"PLAINTEXT://127.0.0.1:{self.port}", f"SASL_PLAINTEXT://127.0.0.1:{self.secured_port}"
        users = " ".join(f'user_{name}="{password}"' for name, password in self.passwords.items())
        return {
            "listeners": f"{plain},{secured},CONTROLLER://127.0.0.1:{controller_port}",
            "advertised.listeners": f"{plain},{secured}",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
                f"org.apache.kafka.common.security.plain.PlainLoginModule required {users};"
            ),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        }

    def _format(self, config: Path) -> None:
        made = tool("kafka.tools.StorageTool", "format", "-t", "bW9sZGF1LW9yYWNsZS0wMQ", "-c", str(config))
        if made.returncode != 0:
            raise RuntimeError(f"formatting failed: {made.stdout}{made.stderr}")

    def _wait_until_it_answers(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + START_S_MAX
        while not _answers_metadata(self.port):
            if self._process.poll() is not None or time.monotonic() > deadline:
                output = (self.directory / "output.txt").read_text(errors="replace")
                raise RuntimeError(f"Apache Kafka did not start: {output[-2000:]}")
            time.sleep(0.1)


def _answers_metadata(port: int) -> bool:
    """Whether the broker answers with itself in the list, which is later than its first open port."""
    answer = ask_metadata(port)
    return len(answer) >= 8 and struct.unpack_from(">i", answer, 4)[0] > 0


def ask_metadata(port: int) -> bytes:
    """The answer to Metadata v1, from the correlation id and the number of brokers on; empty where there is none."""
    body = struct.pack(">hhih", 3, 1, 1, -1) + struct.pack(">i", 0)
    try:
        with closing(socket.create_connection(("127.0.0.1", port), timeout=5)) as connection:
            connection.sendall(struct.pack(">i", len(body)) + body)
            reply = connection.makefile("rb")
            prefix = reply.read(4)
            return reply.read(*struct.unpack(">i", prefix)) if len(prefix) == 4 else b""
    except OSError:
        return b""


def _own_home() -> Path:
    return Path.home() / ".cache" / "moldau-tests" / f"apache-kafka-{VERSION}"


def _installed() -> Path | None:
    """A complete folder that is there already: ours, the one `KAFKA_HOME` names, or a neighbouring project's."""
    candidates = [_own_home(), Path.home() / ".cache" / f"apache-kafka-{VERSION}"]
    if "KAFKA_HOME" in os.environ:
        candidates.insert(0, Path(os.environ["KAFKA_HOME"]))
    jar = Path("libs") / f"kafka-clients-{VERSION}.jar"
    return next((home for home in candidates if (home / ".complete").exists() and (home / jar).exists()), None)


def _install(home: Path) -> None:
    pom = home / "pom.xml"
    pom.write_text(_POM.format(version=VERSION))
    subprocess.run(
        ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={home / 'libs'}"],
        check=True,
        timeout=INSTALL_S_MAX,
        stdin=subprocess.DEVNULL,
    )
    (home / ".complete").touch()


def _write_whole(path: Path, text: str) -> None:
    """Appear at once, so that a test running beside this one never reads half a file."""
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as draft:
        draft.write(text)
    Path(draft.name).replace(path)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
