"""Java's own classes and Apache Kafka's as judges of names, rules and stores."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests import apache_kafka
from tests.clients.toolchains import built, compile_java, java_command, sources

SOURCE = Path(__file__).parent / "java"
JUDGE_S_MAX = 120.0


def command() -> list[str]:
    def build(target: Path) -> None:
        compile_java(SOURCE / "Judge.java", libs=apache_kafka.libs(), classes=target / "classes")

    return java_command(apache_kafka.libs(), built("java-tls", sources(SOURCE), build) / "classes", "Judge")


def ask(kind: str, questions: Sequence[Sequence[bytes]]) -> list[str | None]:
    """An answer for each; None is what Kafka has an exception for."""
    lines = "".join(" ".join(part.hex() for part in question) + "\n" for question in questions)
    done = subprocess.run(
        [*command(), kind], input=lines, capture_output=True, text=True, timeout=JUDGE_S_MAX, check=False
    )
    assert done.returncode == 0, done.stderr
    return [None if line == "none" else bytes.fromhex(line[1:]).decode() for line in done.stdout.splitlines()]
