"""Folders that outlive a run, at any URL that Spark takes: files are read, written whole, listed and deleted.

A path of this machine needs no Spark. Any other URL goes through Hadoop's file systems in the driver's JVM, with the
jars and the `spark.hadoop.*` settings that Spark itself reads its checkpoints with.
"""

from __future__ import annotations

import os
import re
import shutil
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from urllib.parse import unquote, urlsplit

from moldau.spark.secrets import is_secret, masked

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Answer = TypeVar("Answer")

URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
# Stores where a file appears when its writer closes it: there a rename is a copy, and a direct write is the whole one.
APPEARING_WHOLE = ("s3", "s3a", "s3n", "gs", "oss", "cosn", "obs")
# Makes a creation of S3's one conditional request; file systems that create exclusively anyway ignore it.
CONDITIONAL_CREATION = "fs.option.create.conditional.overwrite"
# S3A looks at a file and then fetches the version that it saw: a writer in between makes the answer a refusal.
CHANGED_MEANWHILE = re.compile(r"RemoteFileChangedException|Status Code: 412\b")
READS_MAX = 10
FOR_THE_START = ("spark.driver.", "spark.jars")  # what comes later has no effect
EXISTS_ALREADY = ("FileAlreadyExistsException", "RemoteFileChangedException")


class StorageFailed(OSError):
    """A store did not do what it was asked for; the message names the URL and the reason."""


class ChangedMeanwhile(StorageFailed):
    """A file was written anew while it was read."""


class OutOfReach(StorageFailed):
    """Only a Connect server could reach it."""


class Folder(Protocol):
    """Names are relative, with `/` between; a folder is there as soon as something is in it."""

    @property
    def url(self) -> str: ...

    def read(self, name: str) -> bytes | None:
        """None where there is no such file."""
        ...

    def write(self, name: str, data: bytes) -> None:
        """A reader sees the old file or the new one, never a half."""
        ...

    def create(self, name: str, data: bytes) -> bool:
        """False where there is such a file already: of several that try at once, one is told True."""
        ...

    def names(self) -> list[str]:
        """Files and folders right below, in order."""
        ...

    def delete(self, name: str) -> None:
        """A file, or a folder with all that is in it; one that is not there is no failure."""
        ...


def is_url(text: str) -> bool:
    return URL.match(text) is not None


def located(text: str, beside: Path) -> str:
    """A URL stays what it is, one of this machine becomes its path; a relative path counts from `beside`."""
    if text.startswith("file:/"):
        return unquote(urlsplit(text).path)
    return text if is_url(text) else str(beside / text)


@dataclass(frozen=True, slots=True)
class LocalFolder:
    path: Path

    @property
    def url(self) -> str:
        return str(self.path)

    def read(self, name: str) -> bytes | None:
        try:
            return (self.path / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write(self, name: str, data: bytes) -> None:
        fresh = self._fresh(name, data)
        try:
            fresh.replace(self.path / name)
        except OSError:
            fresh.unlink(missing_ok=True)
            raise

    def create(self, name: str, data: bytes) -> bool:
        fresh = self._fresh(name, data)
        try:
            os.link(fresh, self.path / name)  # unlike opening exclusively, it is there with all that is in it
        except FileExistsError:
            return False
        finally:
            fresh.unlink()
        return True

    def _fresh(self, name: str, data: bytes) -> Path:
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh = file.with_name(f".{file.name}.{uuid.uuid4().hex}")
        try:
            fresh.write_bytes(data)
        except OSError:
            fresh.unlink(missing_ok=True)  # on a full disk each attempt would leave one more
            raise
        return fresh

    def names(self) -> list[str]:
        try:
            return sorted(path.name for path in self.path.iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []

    def delete(self, name: str) -> None:
        path = self.path / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class HadoopFolder:
    """A folder of a Hadoop file system, through the JVM that a driver in Python has beside it."""

    url: str
    gateway: Any
    configuration: Any  # Hadoop's

    def read(self, name: str) -> bytes | None:
        def read() -> bytes:
            stream = self._files().open(self._path(name))
            try:
                return bytes(stream.readAllBytes())
            finally:
                stream.close()

        for _ in range(READS_MAX - 1):
            with suppress(ChangedMeanwhile):
                return self._asked(name, read, otherwise={"FileNotFoundException": None})
        return self._asked(name, read, otherwise={"FileNotFoundException": None})

    def write(self, name: str, data: bytes) -> None:
        def write() -> None:
            if self.url.partition(":")[0] in APPEARING_WHOLE:
                self._put(self._path(name), data, overwrite=True)
                return
            fresh = self._path(f"{name}.{uuid.uuid4().hex}")
            try:
                self._put(fresh, data, overwrite=True)
                self._rename(fresh, self._path(name))
            except BaseException:
                with suppress(Exception):  # a folder whose quota is used up would get one more at each attempt
                    self._files().delete(fresh, False)
                raise

        self._asked(name, write)

    def _rename(self, fresh: Any, path: Any) -> None:
        hadoop = self.gateway.jvm.org.apache.hadoop.fs
        overwriting = self.gateway.new_array(hadoop.Options.Rename, 1)
        overwriting[0] = hadoop.Options.Rename.OVERWRITE
        hadoop.FileContext.getFileContext(fresh.toUri(), self.configuration).rename(fresh, path, overwriting)

    def create(self, name: str, data: bytes) -> bool:
        def create() -> bool:
            self._put(self._path(name), data, overwrite=False)
            return True

        return self._asked(name, create, otherwise=dict.fromkeys(EXISTS_ALREADY, False))

    def names(self) -> list[str]:
        def listed() -> list[str]:
            return sorted(str(each.getPath().getName()) for each in self._files().listStatus(self._path("")))

        return self._asked("", listed, otherwise={"FileNotFoundException": []})

    def delete(self, name: str) -> None:
        self._asked(name, lambda: self._files().delete(self._path(name), True))

    def _put(self, path: Any, data: bytes, *, overwrite: bool) -> None:
        builder = self._files().createFile(path).recursive().overwrite(overwrite)
        if not overwrite:
            builder.opt(CONDITIONAL_CREATION, "true")
        stream = builder.build()
        try:
            stream.write(bytearray(data))
        finally:
            stream.close()

    def _files(self) -> Any:
        return self._path("").getFileSystem(self.configuration)

    def _path(self, name: str) -> Any:
        return self.gateway.jvm.org.apache.hadoop.fs.Path(f"{self.url}/{name}" if name else self.url)

    def _asked(self, name: str, ask: Callable[[], Answer], otherwise: Mapping[str, Answer] | None = None) -> Answer:
        """What Hadoop answers; `otherwise` says what some of its exceptions mean."""
        from py4j.protocol import Py4JError, Py4JJavaError

        try:
            return ask()
        except Py4JJavaError as wrong:
            kind = str(wrong.java_exception.getClass().getSimpleName())
            if otherwise and kind in otherwise:
                return otherwise[kind]
            told = str(wrong.java_exception.getMessage() or kind).splitlines()[0]
            failure = ChangedMeanwhile if CHANGED_MEANWHILE.search(f"{kind} {told}") else StorageFailed
            raise failure(f"{self.url}/{name}".rstrip("/") + f": {_explained(kind, told)}") from None
        except (Py4JError, ConnectionError):
            raise StorageFailed(f"{self.url}: Spark, which reaches it, is gone") from None


def _explained(kind: str, told: str) -> str:
    """Hadoop names a class where a jar is missing."""
    if kind == "UnsupportedFileSystemException" or "ClassNotFoundException" in told:
        return f"Spark has no jar for such URLs ({told}): name one by spark.jars.packages"
    return told


def folder_of(url: str, spark: SparkSession) -> Folder:
    """`url` is a path of this machine, or any that the session's Spark takes. Raises StorageFailed over Connect."""
    if not is_url(url):
        return LocalFolder(Path(url))
    if not hasattr(spark, "_sc"):
        raise OutOfReach(f"{url}: over Spark Connect only the server reaches it; set state to a folder here")
    context = spark.sparkContext
    return HadoopFolder(url.rstrip("/"), context._gateway, context._jsc.hadoopConfiguration())


def shown_to_all(settings: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """What a JVM may be started with: all users of the machine see its command line. It gets the rest once it runs."""
    return tuple(
        (key, value)
        for key, value in settings
        if not is_secret(key) and (key.startswith(FOR_THE_START) or masked(value) == value)
    )


def folder_without_session(url: str, settings: Mapping[str, str]) -> Folder:
    """For a look at files where nothing runs: at a URL a JVM is started, with the pipeline's `spark.*` settings."""
    if not is_url(url):
        return LocalFolder(Path(url))
    said = tuple((key, value) for key, value in settings.items() if key.startswith("spark.") and key != "spark.master")
    gateway = _gateway(shown_to_all(said))
    configured = gateway.jvm.org.apache.spark.SparkConf(True)
    for key, value in said:
        configured.set(key, value)
    hadoop = gateway.jvm.org.apache.spark.deploy.SparkHadoopUtil.get().newConfiguration(configured)
    return HadoopFolder(url.rstrip("/"), gateway, hadoop)


@lru_cache(maxsize=1)
def _gateway(settings: tuple[tuple[str, str], ...]) -> Any:
    from pyspark import SparkConf
    from pyspark.java_gateway import launch_gateway

    return launch_gateway(SparkConf(loadDefaults=False).setAll(list(settings)))  # type: ignore[no-untyped-call]
