"""An archive of Spark's classes is used if it is there and whole, and left behind only where that is wanted."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="scripts/test-broker installs nothing of Spark")

from moldau.spark.pipelines.running.sessions.quick_start import LITTLE_COMPILING, QUIET, archive, java_options


def test_an_archive_is_used_if_it_is_whole(tmp_path: Path) -> None:
    kept = tmp_path / "moldau" / "spark.jsa"
    assert java_options(kept, keeps=False) == LITTLE_COMPILING
    assert java_options(kept, keeps=True)[2:] == (QUIET, f'"-XX:ArchiveClassesAtExit={kept}"')
    kept.write_bytes(bytes(4096))  # a JVM was ended while it wrote
    assert java_options(kept, keeps=True)[2:] == (QUIET, f'"-XX:ArchiveClassesAtExit={kept}"')
    kept.write_bytes(b"\xf0\x0b\xab\xa8" + bytes(4096))
    assert java_options(kept, keeps=True)[2:] == (QUIET, f'"-XX:SharedArchiveFile={kept}"')
    assert java_options(None, keeps=True) == LITTLE_COMPILING


def test_each_java_has_an_archive_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = []
    for name in ("one", "other"):
        java = tmp_path / name / "bin" / "java"
        java.parent.mkdir(parents=True)
        java.touch()
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / name))
        found.append(archive())
    assert found[0] != found[1]
    assert all(one is not None and one.parent == tmp_path / "moldau" for one in found)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "none"))
    assert archive() is None
