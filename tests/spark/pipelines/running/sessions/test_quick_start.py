"""An archive of Spark's classes is used if it is there, and made once."""

from __future__ import annotations

import fcntl
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="scripts/test-broker installs nothing of Spark")

from moldau.spark.pipelines.running.sessions import class_archive
from moldau.spark.pipelines.running.sessions.quick_start import QUICK, QUIET, archive, java_options

START_S = 3.0


def test_an_archive_is_used_if_it_is_there(tmp_path: Path) -> None:
    kept = tmp_path / "moldau" / "spark.jsa"
    assert java_options(kept) == QUICK
    kept.parent.mkdir()
    kept.touch()
    assert java_options(kept) == (*QUICK, QUIET, f'"-XX:SharedArchiveFile={kept}"')
    assert java_options(None) == QUICK


def test_somebody_else_who_makes_the_archive_is_left_to_it(tmp_path: Path) -> None:
    kept = tmp_path / "spark.jsa"
    with kept.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert run(kept).returncode == class_archive.OK
    assert not kept.exists()


def test_who_waits_for_the_archive_waits_for_somebody_else_too(tmp_path: Path) -> None:
    kept = tmp_path / "spark.jsa"
    with ThreadPoolExecutor(1) as pool, kept.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = pool.submit(class_archive.make, kept)
        with pytest.raises(TimeoutError):
            made.result(START_S)
        kept.touch()
        fcntl.flock(lock, fcntl.LOCK_UN)
        assert made.result(10 * START_S)


def test_no_module_of_the_working_folder_is_imported(tmp_path: Path) -> None:
    (tmp_path / "tempfile.py").write_text("raise SystemExit('somebody else is here')")
    kept = tmp_path / "kept" / "spark.jsa"
    kept.parent.mkdir()
    kept.touch()
    ended = run(kept, cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (class_archive.OK, "")


def test_a_java_that_keeps_no_classes_is_not_asked_over_and_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho >> {tmp_path}/started\nexit 1\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    kept = tmp_path / "spark.jsa"
    left = tmp_path / "spark-making-1"  # by one that was killed
    left.mkdir()
    assert not class_archive.make(kept)
    assert not left.exists()
    started = (tmp_path / "started").read_bytes()
    class_archive.begin(kept)
    os.utime(kept.with_suffix(".failed"), (0, 0))
    assert not class_archive.make(kept)  # waits for what was begun
    assert (tmp_path / "started").read_bytes() == 2 * started


def run(kept: Path, *, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(class_archive._command(kept), cwd=cwd, capture_output=True, text=True, check=False)


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
