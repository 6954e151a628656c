"""A JVM that answers the first question soon: it compiles little, and its classes come from an archive.

Spark loads some twenty thousand classes before it answers, and that is most of what a first answer costs. Java can keep
them in a file that the next JVM maps into memory (class data sharing). `class_archive` makes that file, by a JVM of its
own: one that is to write it answers half as fast. A JVM that finds a file of another Java, or of another Spark,
disregards it.
"""

from __future__ import annotations

import os
import shutil
from hashlib import sha256
from pathlib import Path

CACHE_VARIABLE = "XDG_CACHE_HOME"
# Compiling for speed takes longer than most questions; one core is enough to clean up after one of them.
LITTLE_COMPILING = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
# Spark's own classes, as pip installed them, are what is loaded: verifying their code is a third of a first answer that
# finds no archive. A Java that lacks the option may leave it out.
UNVERIFIED = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:-BytecodeVerificationRemote",
)
QUICK = (*LITTLE_COMPILING, *UNVERIFIED)
# An archive that does not fit is no news to anybody; Java would say so on standard output.
QUIET = "-Xlog:disable"


def archive() -> Path | None:
    """Where this Java's archive of this Spark's classes is, or would be; None where there is no Java."""
    import pyspark

    home = os.environ.get("JAVA_HOME")
    java = Path(home, "bin", "java") if home else Path(shutil.which("java") or "")
    if not java.is_file():
        return None
    java = java.resolve()
    about = f"{java} {java.stat().st_mtime_ns} {Path(pyspark.__file__).parent}"
    cache = Path(os.environ.get(CACHE_VARIABLE) or Path.home() / ".cache")
    return cache / "moldau" / f"spark-{pyspark.__version__}-{sha256(about.encode()).hexdigest()[:12]}.jsa"


def java_options(kept: Path | None) -> tuple[str, ...]:
    """For the driver's JVM."""
    if kept is None or not kept.is_file():
        return QUICK
    return (*QUICK, QUIET, f'"-XX:SharedArchiveFile={kept}"')


def archiving_options(written: Path) -> tuple[str, ...]:
    """For a JVM that writes the archive when it ends, which takes it some seconds."""
    return (*QUICK, QUIET, f'"-XX:ArchiveClassesAtExit={written}"')
