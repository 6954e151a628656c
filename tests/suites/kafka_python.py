"""kafka-python's own integration tests, from its source distribution, in an environment of their own.

The distribution lacks the module that starts processes, which nobody needs who has a broker already; a stand-in for it
is put in its place. Its tests of SASL and TLS, which start brokers of their own, are run apart from the others.
"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests import apache_kafka
from tests.brokers import count_of, running_broker
from tests.clients.secured_brokers import running_listeners
from tests.clusters import running_cluster
from tests.suites import kafka_python_secured
from tests.suites.outcomes import Outcome, read_outcomes

RUN_S_MAX = 900.0
REQUIREMENTS = ("pytest", "pytest-mock", "pytest-timeout", "py", "crc32c", "lz4", "python-snappy", "zstandard")

# What its own fixture would configure, as far as its tests depend on it: broker 0, four partitions, short sessions, and
# an authorizer that allows what no ACL speaks of.
SETTINGS = {
    "num.partitions": "4",
    "group.min.session.timeout.ms": "500",
    "group.initial.rebalance.delay.ms": "0",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}

_SERVICE = """\
class ExternalService:
    def __init__(self, host, port):
        self.host, self.port = host, port

    def dump_logs(self):
        pass

    def stop(self):
        pass


class SpawnedService:
    def __init__(self, args, env):
        raise RuntimeError("only a broker that runs already is tested")
"""

# Its fixture gives topics one replica if it has not started the broker itself.
_REPLICAS = """\
import os


def pytest_collection(session):
    from test.integration.fixtures import KafkaFixture

    KafkaFixture.replicas = property(lambda self: int(os.environ["REPLICAS"]), lambda self, ignored: None)
"""


def run(kind: str, arguments: Sequence[str] = ()) -> dict[str, Outcome]:
    """What became of each of its tests on a fresh broker of that kind; the arguments are pytest's.

    On a cluster without those of SASL and TLS, which are about one broker's listeners.
    """
    found = _run_open(kind, arguments)
    return found | _run_secured(kind, arguments) if count_of(kind) == 1 else found


def _run_open(kind: str, arguments: Sequence[str]) -> dict[str, Outcome]:
    with _broker(kind) as address, tempfile.TemporaryDirectory(prefix="kafka-python-suite-") as scratch:
        (Path(scratch) / "replicas_of_topics.py").write_text(_REPLICAS)
        words = ["test/integration", *(f"--ignore=test/integration/{name}" for name in kafka_python_secured.FILES)]
        given = {"REPLICAS": str(count_of(kind)), "KAFKA_URI": f"kafka://{address}"}
        return _pytest(Path(scratch), "replicas_of_topics", [*words, *arguments], given)


def _run_secured(kind: str, arguments: Sequence[str]) -> dict[str, Outcome]:
    with tempfile.TemporaryDirectory(prefix="kafka-python-suite-") as name:
        (scratch := Path(name) / "suite").mkdir()
        (keys := Path(name) / "keys").mkdir()
        with running_listeners(kind, keys, **kafka_python_secured.SETTINGS) as listeners:
            words = [f"test/integration/{name}" for name in kafka_python_secured.FILES]
            given = kafka_python_secured.environment(listeners, scratch)
            return _pytest(scratch, kafka_python_secured.PLUGIN, [*words, *arguments], given)


def _pytest(scratch: Path, plugin: str, arguments: Sequence[str], given: Mapping[str, str]) -> dict[str, Outcome]:
    suite, report = prepared(), scratch / "report.xml"
    options = ["-q", "-p", "no:cacheprovider", "-p", plugin, "-o", "log_level=WARNING", "--tb=short"]
    subprocess.run(
        [str(suite / "env" / "bin" / "python"), "-m", "pytest", f"--junitxml={report}", *options, *arguments],
        cwd=suite / "source",
        env={
            **os.environ,
            "PYTHONPATH": str(scratch),
            "KAFKA_VERSION": apache_kafka.VERSION,
            "KAFKA_ROOT": str(scratch),  # it must exist
            **given,
        },
        timeout=RUN_S_MAX,
        check=False,
    )
    return read_outcomes(report)


@contextmanager
def _broker(kind: str) -> Iterator[str]:
    """The address of the broker with the lowest id, which is 0."""
    count = count_of(kind)
    if count > 1:
        settings = {
            **SETTINGS,
            "default.replication.factor": str(count),
            "min.insync.replicas": str(count - 1),
            # Apache Kafka's nodes answer each other before they have read any ACL only as super users.
            "super.users": "User:ANONYMOUS",
        }
        with running_cluster(kind.partition("*")[0], count=count, first_id=0, properties=settings) as cluster:
            yield cluster.bootstrap_servers.partition(",")[0]
    else:
        with running_broker(kind, properties={**SETTINGS, **_advertised(kind), "node.id": "0"}) as address:
            yield address


def _advertised(kind: str) -> dict[str, str]:
    """One of its tests wants to find this setting among those that somebody gave, as Apache Kafka's broker has it."""
    if kind != "moldau":
        return {}
    address = f"PLAINTEXT://127.0.0.1:{apache_kafka.free_ports(1)[0]}"
    return {"listeners": address, "advertised.listeners": address}


def prepared() -> Path:
    """The folder with `source` and `env`, made once for a version."""
    version = importlib.metadata.version("kafka-python")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "moldau-tests"
    target = cache / f"kafka-python-suite-{version}"
    if not (target / ".complete").exists():
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        _download(version, target)
        (target / "source" / "test" / "__init__.py").touch()  # else Python's own package of that name is found
        (target / "source" / "test" / "service.py").write_text(_SERVICE)
        subprocess.run([sys.executable, "-m", "venv", str(target / "env")], check=True)
        _pip(target / "env" / "bin" / "python", "install", f"kafka-python=={version}", *REQUIREMENTS)
        (target / ".complete").touch()
    return target


def _download(version: str, target: Path) -> None:
    _pip(Path(sys.executable), "download", "--no-deps", "--no-binary", ":all:", "--dest", str(target),
         f"kafka-python=={version}")  # fmt: skip
    (archive,) = target.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(target, filter="data")
    archive.unlink()
    (unpacked,) = target.glob("kafka_python-*")
    unpacked.rename(target / "source")


def _pip(python: Path, *arguments: str) -> None:
    subprocess.run([str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments], check=True)
