"""Builds the drivers that are not Python, once per machine and version of their sources, in the user's cache folder.

Two test runs at once share the cache: whoever comes second waits for the first one's build.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests import apache_kafka

HERE = Path(__file__).parent
BUILD_S_MAX = 280.0


class MissingToolchain(Exception):
    """A compiler or package tool that the tests need is not on this machine."""


def go_driver() -> list[str]:
    source = HERE / "go"

    def build(target: Path) -> None:
        run("go", "build", "-mod=readonly", "-o", str(target / "driver"), ".", directory=source)

    return [str(built("go", sources(source), build) / "driver")]


def go_member() -> list[str]:
    return go_program("member")


def go_session() -> list[str]:
    return go_program("session")


def go_program(name: str) -> list[str]:
    source = HERE / "go"

    def build(target: Path) -> None:
        run("go", "build", "-mod=readonly", "-o", str(target / name), f"./{name}", directory=source)

    inputs = [*sources(source / name), source / "go.mod", source / "go.sum"]
    return [str(built(f"go-{name}", inputs, build) / name)]


def javascript_driver() -> list[str]:
    return javascript("driver.js")


def javascript_member() -> list[str]:
    return javascript("member.js")


def javascript_session() -> list[str]:
    return javascript("session.js")


def javascript(script: str) -> list[str]:
    source = HERE / "javascript"

    def build(target: Path) -> None:
        for path in sources(source):
            shutil.copy(path, target)
        run("npm", "ci", "--silent", "--ignore-scripts", directory=target)

    return [found("node"), str(built("javascript", sources(source), build) / script)]


def java_driver() -> list[str]:
    """The driver on the clients of the newest Apache Kafka."""
    return java_command(apache_kafka.libs(), newest_java_classes(), "Driver")


def java_member() -> list[str]:
    return java_command(apache_kafka.libs(), newest_java_classes(), "Member")


def java_session() -> list[str]:
    return java_command(apache_kafka.libs(), newest_java_classes(), "Session")


def spark_java_driver() -> list[str]:
    return spark_java("Driver")


def spark_java_session() -> list[str]:
    return spark_java("Session")


def spark_java(main_class: str) -> list[str]:
    """A program on the clients that Spark brings."""
    source = HERE / "java"

    def build(target: Path) -> None:
        shutil.copy(source / "pom.xml", target)
        libs = target / "libs"
        run("mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={libs}", directory=target)
        for name in ("Driver.java", "Session.java"):
            compile_java(source / name, libs=libs, classes=target / "classes")

    target = built("java-spark", sources(source), build)
    return java_command(target / "libs", target / "classes", main_class)


def streams_application() -> list[str]:
    """A word count on Kafka Streams; it takes the bootstrap address and a folder for its state."""
    source = HERE / "streams"

    def build(target: Path) -> None:
        shutil.copy(source / "pom.xml", target)
        libs = target / "libs"
        run("mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={libs}", directory=target)
        compile_java(source / "WordCount.java", libs=libs, classes=target / "classes")

    target = built("streams", sources(source), build)
    return java_command(target / "libs", target / "classes", "WordCount")


def java_reader() -> list[str]:
    """A consumer of one partition on the newest clients; it takes auto.offset.reset, a topic and the address."""
    source = HERE / "reader"

    def build(target: Path) -> None:
        compile_java(source / "Reader.java", libs=apache_kafka.libs(), classes=target / "classes")

    return java_command(apache_kafka.libs(), built("java-reader", sources(source), build) / "classes", "Reader")


def tool_host() -> list[str]:
    return java_command(apache_kafka.libs(), newest_java_classes(), "ToolHost")


def newest_java_classes() -> Path:
    source = HERE / "java"

    def build(target: Path) -> None:
        for name in ("Driver.java", "ToolHost.java", "Member.java", "Session.java"):
            compile_java(source / name, libs=apache_kafka.libs(), classes=target / "classes")

    return built("java-newest", sources(source), build) / "classes"


def java_command(libs: Path, classes: Path, main_class: str) -> list[str]:
    # The serial collector and the first compiler only: these processes live for seconds.
    return [
        found("java"),
        "-Xmx512M",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-cp",
        f"{classes}:{libs}/*",
        main_class,
    ]


def compile_java(source: Path, *, libs: Path, classes: Path) -> None:
    run("javac", "-nowarn", "-d", str(classes), "-cp", f"{libs}/*", str(source), directory=source.parent)


def sources(directory: Path) -> list[Path]:
    return sorted(path for path in directory.iterdir() if path.is_file())


def built(name: str, inputs: list[Path], build: Callable[[Path], None]) -> Path:
    """The folder with what `build` makes of the inputs; made on the first call for exactly these inputs."""
    digest = hashlib.sha256()
    for path in inputs:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "moldau-tests"
    cache.mkdir(parents=True, exist_ok=True)
    target = cache / f"{name}-{digest.hexdigest()[:16]}"
    with (cache / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (target / ".complete").exists():
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir()
            build(target)
            (target / ".complete").touch()
    return target


def found(program: str) -> str:
    if shutil.which(program) is None:
        raise MissingToolchain(f"these tests need `{program}` and it is not on the PATH")
    return program


def run(program: str, *args: str, directory: Path) -> None:
    done = subprocess.run(
        [found(program), *args], cwd=directory, capture_output=True, text=True, timeout=BUILD_S_MAX, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"`{program} {' '.join(args)}` failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
