"""Java's Avro library itself, as the oracle: its jars through Maven, and one process for many questions."""

from __future__ import annotations

import fcntl
import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

VERSION = "1.12.2"
HOME = Path.home() / ".cache" / "moldau-tests" / f"avro-{VERSION}"
SOURCE = Path(__file__).with_name("java") / "Oracle.java"

_POM = f"""\
<project><modelVersion>4.0.0</modelVersion>
<groupId>moldau</groupId><artifactId>avro-oracle</artifactId><version>1</version><dependencies>
<dependency><groupId>org.apache.avro</groupId><artifactId>avro</artifactId><version>{VERSION}</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>2.0.16</version></dependency>
</dependencies></project>
"""


def available() -> bool:
    """Whether there is a Java that compiles, and the jars or Maven to get them."""
    return shutil.which("javac") is not None and ((HOME / ".complete").exists() or shutil.which("mvn") is not None)


def ask(questions: Sequence[Mapping[str, Any]], *, timeout_s: float = 280.0) -> list[dict[str, Any]]:
    """An answer for each question."""
    lines = "".join(json.dumps(question) + "\n" for question in questions)
    answered = subprocess.run(
        ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", f"{_jars()}/*", str(SOURCE)],
        input=lines, capture_output=True, text=True, timeout=timeout_s, check=True, encoding="utf-8",
    )  # fmt: skip
    return [json.loads(line) for line in answered.stdout.splitlines()]


def _jars() -> Path:
    """Fetched once on a machine."""
    libs = HOME / "libs"
    HOME.mkdir(parents=True, exist_ok=True)
    with (HOME / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (HOME / ".complete").exists():
            (HOME / "pom.xml").write_text(_POM)
            command = ["mvn", "-q", "-B", "-f", str(HOME / "pom.xml"), "dependency:copy-dependencies"]
            subprocess.run([*command, f"-DoutputDirectory={libs}"], check=True, timeout=280, stdin=subprocess.DEVNULL)
            (HOME / ".complete").touch()
    return libs
