"""An archive of Spark's classes is used if it is there, and made once."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="scripts/test-broker installs nothing of Spark")

from moldau.spark.pipelines.running.sessions import class_archive
from moldau.spark.pipelines.running.sessions.quick_start import LITTLE_COMPILING, QUIET, archive, java_options


def test_an_archive_is_used_if_it_is_there(tmp_path: Path) -> None:
    kept = tmp_path / "moldau" / "spark.jsa"
    assert java_options(kept) == LITTLE_COMPILING
    kept.parent.mkdir()
    kept.touch()
    assert java_options(kept)[2:] == (QUIET, f'"-XX:SharedArchiveFile={kept}"')
    assert java_options(None) == LITTLE_COMPILING


def test_somebody_else_who_makes_the_archive_is_left_to_it(tmp_path: Path) -> None:
    kept = tmp_path / "spark.jsa"
    with kept.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert class_archive.make(kept)
    assert not kept.exists()


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
