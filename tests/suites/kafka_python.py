"""kafka-python's own integration tests, from its source distribution, in an environment of their own.

The distribution lacks the module that starts processes, which nobody needs who has a broker already; a stand-in for it
is put in its place. Its tests of SASL and TLS start brokers themselves, with files that it doesn't bring, and are left
out on both sides.
"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests import apache_kafka
from tests.brokers import count_of, running_broker
from tests.clusters import running_cluster
from tests.suites.outcomes import Outcome, read_outcomes

RUN_S_MAX = 900.0
NEEDS_A_BROKER_OF_ITS_OWN = ("test_sasl_integration.py", "test_ssl_integration.py")
REQUIREMENTS = ("pytest", "pytest-mock", "pytest-timeout", "py", "crc32c", "lz4", "python-snappy", "zstandard")

# What its own fixture would configure, as far as its tests depend on it: broker 0, four partitions, short sessions.
# It also has an authorizer, which we don't; without one its test of ACLs fails on both sides.
SETTINGS = {"num.partitions": "4", "group.min.session.timeout.ms": "500", "group.initial.rebalance.delay.ms": "0"}

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
    """What became of each of its tests on a fresh broker of that kind; the arguments are pytest's."""
    suite = prepared()
    with _broker(kind) as address, tempfile.TemporaryDirectory(prefix="kafka-python-suite-") as scratch:
        report = Path(scratch) / "report.xml"
        (Path(scratch) / "replicas_of_topics.py").write_text(_REPLICAS)
        left_out = [f"--ignore=test/integration/{name}" for name in NEEDS_A_BROKER_OF_ITS_OWN]
        subprocess.run(
            [
                *(str(suite / "env" / "bin" / "python"), "-m", "pytest", "test/integration", f"--junitxml={report}"),
                *(
                    "-q",
                    "-p",
                    "no:cacheprovider",
                    "-p",
                    "replicas_of_topics",
                    "-o",
                    "log_level=WARNING",
                    "--tb=short",
                    *left_out,
                    *arguments,
                ),
            ],
            cwd=suite / "source",
            env={
                **os.environ,
                "PYTHONPATH": scratch,
                "REPLICAS": str(count_of(kind)),
                "KAFKA_VERSION": apache_kafka.VERSION,
                "KAFKA_URI": f"kafka://{address}",
                "KAFKA_ROOT": scratch,  # it must exist, and nothing in it is used
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
        settings = {**SETTINGS, "default.replication.factor": str(count), "min.insync.replicas": str(count - 1)}
        with running_cluster(kind.partition("*")[0], count=count, first_id=0, properties=settings) as cluster:
            yield cluster.bootstrap_servers.partition(",")[0]
    else:
        with running_broker(kind, properties={**SETTINGS, "node.id": "0"}) as address:
            yield address


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
