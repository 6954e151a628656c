"""Spark with its stock connector for Kafka: its version, in an environment of its own, made once per machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.clients.toolchains import built

HERE = Path(__file__).parent
REQUIREMENTS = HERE / "requirements.txt"
# The newest version of the connector that can be had whole wherever Spark looks for packages; it fits this Spark only.
CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0"
INSTALL_S_MAX = 1800.0


def stock_python() -> str:
    """The interpreter that has that Spark."""

    def build(target: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", str(target / "venv")], check=True)
        install = [str(target / "venv/bin/pip"), "install", "--quiet", "--requirement", str(REQUIREMENTS)]
        subprocess.run(install, check=True, timeout=INSTALL_S_MAX)

    return str(built("spark-stock", [REQUIREMENTS], build) / "venv/bin/python")
