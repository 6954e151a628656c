"""Folders by path and by URL behave alike: whole files, one creator, deletion of what may not be there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from moldau.spark.storage import (
    Folder,
    HadoopFolder,
    LocalFolder,
    StorageFailed,
    folder_of,
    is_url,
    located,
    shown_to_all,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(params=["path", "url"])
def folder(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Folder:
    made = folder_of(str(tmp_path / "kept") if request.param == "path" else f"{tmp_path.as_uri()}/kept", spark)
    assert isinstance(made, LocalFolder if request.param == "path" else HadoopFolder)
    return made


def test_files_are_written_read_listed_and_deleted(folder: Folder) -> None:
    assert (folder.read("a/b"), folder.names()) == (None, [])
    folder.write("a/b", b"one")
    folder.write("a/b", b"two")
    folder.write("c", b"\x00\xff")
    assert (folder.read("a/b"), folder.read("c"), folder.names()) == (b"two", b"\x00\xff", ["a", "c"])
    for name in ("a", "c", "c", "nothing"):
        folder.delete(name)
    assert folder.names() == []


def test_a_file_is_created_once(folder: Folder) -> None:
    assert folder.create("lock", b"mine")
    assert not folder.create("lock", b"yours")
    assert folder.read("lock") == b"mine"


@pytest.mark.parametrize("call", ["write", "create"])
def test_a_write_that_fails_leaves_nothing_behind(tmp_path: Path, call: str) -> None:
    """A status is written twice a second: on a full disk each attempt would leave a file."""
    program = (
        "import pathlib, resource, sys; from moldau.spark.storage import LocalFolder;"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10));"
        "getattr(LocalFolder(pathlib.Path(sys.argv[1])), sys.argv[2])('status.json', bytes(100))"
    )
    command = [sys.executable, "-c", program, str(tmp_path), call]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "File too large" in ended.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_write_that_comes_to_nothing_leaves_nothing_behind(folder: Folder) -> None:
    folder.write("status.json/folder", b"in the way")
    write: Callable[[str, bytes], None] = folder.write
    with pytest.raises(OSError, match=r"status\.json"):
        write("status.json", b"new")
    assert folder.names() == ["status.json"]


def test_a_jvm_is_not_started_with_passwords_in_urls() -> None:
    """All users of a machine see its command line."""
    shown = {"spark.sql.shuffle.partitions": "4", "spark.jars.repositories": "https://reader:hunter2@jars/"}
    hidden = {"spark.sql.catalog.lake.uri": "postgresql://me:hunter2@db/lake", "spark.hadoop.fs.s3a.secret.key": "x"}
    assert dict(shown_to_all({**shown, **hidden}.items())) == shown


def test_of_many_that_create_a_file_at_once_one_does(tmp_path: Path) -> None:
    folder = LocalFolder(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        made: list[bool] = list(pool.map(lambda number: folder.create("lock", b"%d" % number), range(8)))
    assert made.count(True) == 1
    assert folder.read("lock") == b"%d" % made.index(True)


def test_a_url_that_nobody_knows_is_refused_with_what_to_do(spark: SparkSession) -> None:
    read: Callable[[str], bytes | None] = folder_of("unheard://of/it", spark).read
    with pytest.raises(StorageFailed, match=r"unheard://of/it/x: Spark has no jar for such URLs .*spark.jars.packages"):
        read("x")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("s3a://bucket/orders", "s3a://bucket/orders"),
        ("hdfs:/orders", "hdfs:/orders"),
        ("orders", "/jobs/orders"),
        ("/var/orders", "/var/orders"),
        ("file:///var/my%20orders", "/var/my orders"),
    ],
)
def test_only_relative_paths_count_from_the_file(text: str, found: str) -> None:
    assert located(text, Path("/jobs")) == found
    assert is_url(found) == (found == text and ":" in text)


class Fake:
    """Stands for an object of Java: an answer for each method that is called, by its name."""

    _gateway_client, _target_id = None, "o1"

    def __init__(self, **answers: object) -> None:
        self.answers = answers

    def __getattr__(self, name: str) -> Callable[..., object]:
        answer = self.answers[name]
        return lambda *_: answer(*_) if callable(answer) else answer


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("RemoteFileChangedException", "the file has changed"),
        ("AWSS3IOException", "At least one of the pre-conditions did not hold (Service: S3, Status Code: 412)"),
    ],
)
def test_a_file_that_is_written_anew_while_it_is_read_is_read_again(kind: str, message: str) -> None:
    from py4j.protocol import Py4JJavaError

    reads: list[object] = []

    def opened(path: object) -> Fake:
        reads.append(path)
        if len(reads) < 3:
            raise Py4JJavaError("", Fake(getClass=Fake(getSimpleName=kind), getMessage=message))
        return Fake(readAllBytes=b"new", close=None)

    path = Fake(getFileSystem=Fake(open=opened))
    hadoop = SimpleNamespace(fs=SimpleNamespace(Path=lambda _: path))
    jvm = SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(hadoop=hadoop)))
    folder = HadoopFolder("s3a://lake/kept", SimpleNamespace(jvm=jvm), None)
    assert (folder.read("status.json"), len(reads)) == (b"new", 3)
