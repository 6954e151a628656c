"""Which Python Spark runs when nobody activated the environment: the job of the guide, and our own commands."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

import moldau
from moldau import EmbeddedBroker
from tests.brokers import PROJECT

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("spark"), pytest.mark.timeout(300)]

WAIT_S_MAX = 120.0
GUIDE = PROJECT / "docs" / "guides" / "spark.md"


@pytest.fixture
def environment() -> dict[str, str]:
    """The machine's own programs on the path, and nothing that says where our Python is."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK", "PYTHON", "VIRTUAL"))}
    java = [str(Path(kept["JAVA_HOME"], "bin"))] if "JAVA_HOME" in kept else []
    return {**kept, "PATH": os.pathsep.join([*java, "/usr/local/bin", "/usr/bin", "/bin"])}


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with moldau.run() as started:
        producer = Producer({"bootstrap.servers": started.bootstrap_servers})
        producer.produce("orders", b'{"cups": 2}')
        assert not producer.flush(WAIT_S_MAX)
        yield started


def test_the_job_of_the_guide_finds_the_source(
    broker: EmbeddedBroker, environment: dict[str, str], tmp_path: Path
) -> None:
    """It starts at the end of the topic, so records are written until one comes out at the other end."""
    code = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)[0]
    job = tmp_path / "job.py"
    job.write_text(code.replace("localhost:9092", broker.bootstrap_servers).replace("/var/lib", str(tmp_path)))
    with (tmp_path / "printed").open("w") as printed:
        running = subprocess.Popen(
            [sys.executable, str(job)], cwd=tmp_path, env=environment, stdout=printed, stderr=subprocess.STDOUT
        )
    try:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        deadline_s = time.monotonic() + WAIT_S_MAX
        while "CUPS" not in consumed(broker, "orders-shouted"):
            assert running.poll() is None, (tmp_path / "printed").read_text()
            assert time.monotonic() < deadline_s, (tmp_path / "printed").read_text()
            producer.produce("orders", b"cups")
            producer.flush(WAIT_S_MAX)
    finally:
        running.send_signal(signal.SIGINT)
        running.wait(WAIT_S_MAX)


def consumed(broker: EmbeddedBroker, topic: str) -> str:
    command = [
        sys.executable,
        "-m",
        "moldau",
        "consume",
        topic,
        "--from-beginning",
        "-e",
        "-X",
        "isolation.level=read_committed",
    ]
    command += ["--bootstrap-server", broker.bootstrap_servers]
    return subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S_MAX, check=False).stdout


def test_sql_finds_the_source(broker: EmbeddedBroker, environment: dict[str, str], tmp_path: Path) -> None:
    environment |= {"MOLDAU_BOOTSTRAP_SERVERS": broker.bootstrap_servers, "MOLDAU_HOME": str(tmp_path)}
    asked = subprocess.run(
        [sys.executable, "-m", "moldau", "sql", "select cups from orders", "-o", "csv"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=WAIT_S_MAX,
        check=False,
    )
    assert asked.stdout.split() == ["cups", "2"], asked.stderr
