"""Every scenario of `scripts/scenarios` passes; a minute each, so the usual run leaves them out (`-m long`)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import apache_kafka
from tests.faults.cluster.test_network import needs_namespaces
from tests.scenarios.catalogue import scenarios

PROJECT = Path(__file__).parents[2]
RUN_S_MAX = 1_500


@pytest.mark.long
@pytest.mark.timeout(RUN_S_MAX + 60)
@pytest.mark.xdist_group("faults")
@needs_namespaces
@pytest.mark.skipif(not apache_kafka.available(), reason="needs Java and Apache Kafka's jars")
@pytest.mark.parametrize("name", [each.name for each in scenarios()])
def test_scenario(name: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.scenarios", "--exactly", name, "--directory", str(tmp_path)]
    done = subprocess.run(
        command, cwd=PROJECT, capture_output=True, text=True, timeout=RUN_S_MAX, check=False, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stdout + done.stderr
