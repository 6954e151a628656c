"""A server that speaks S3, in a process of its own, and the jars and settings with which Spark reaches it."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.apache_kafka import free_ports
from tests.spark.servers import wait_for_port

# Hadoop's own choice is a bundle of all of Amazon's services, 600 MB: these are the parts that it uses.
SDK = "2.35.4"
PACKAGES_SETTINGS = {
    "spark.jars.packages": ",".join(
        [
            "org.apache.hadoop:hadoop-aws:3.5.0",
            *(f"software.amazon.awssdk:{part}:{SDK}" for part in ("s3", "s3-transfer-manager", "sts")),
        ]
    ),
    "spark.jars.excludes": "software.amazon.awssdk:bundle",
}
SIGNED = "AWS4-HMAC-SHA256 Credential=key/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=none"


@dataclass(frozen=True, slots=True)
class ObjectStore:
    url: str

    @property
    def spark_settings(self) -> dict[str, str]:
        return {
            "spark.hadoop.fs.s3a.endpoint": self.url,
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
            "spark.hadoop.fs.s3a.access.key": "key",
            "spark.hadoop.fs.s3a.secret.key": "secret",
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
        }

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
        }

    def create_bucket(self, bucket: str) -> None:
        self._ask("PUT", bucket)

    def put(self, bucket: str, name: str, data: bytes) -> None:
        self._ask("PUT", f"{bucket}/{name}", data)

    def delete(self, bucket: str, name: str) -> None:
        self._ask("DELETE", f"{bucket}/{name}")

    def names(self, bucket: str, prefix: str = "") -> list[str]:
        answer = self._ask("GET", f"{bucket}?list-type=2&prefix={urllib.parse.quote(prefix)}")
        return re.findall(r"<Key>(.*?)</Key>", answer.decode())

    def _ask(self, method: str, path: str, data: bytes | None = None) -> bytes:
        # The server asks whether somebody signed, not who. The library's own type is that of a form, whose text the
        # server would take for itself.
        headers = {"Authorization": SIGNED, "Content-Type": "application/octet-stream"}
        asked = urllib.request.Request(f"{self.url}/{path}", data, headers, method=method)
        with urllib.request.urlopen(asked) as answer:
            found: bytes = answer.read()
            return found


@contextmanager
def running_object_store() -> Iterator[ObjectStore]:
    pytest.importorskip("moto", reason="pip install 'moto[server]' brings a server that speaks S3")
    (port,) = free_ports(1)
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "server.txt"
        with output.open("wb") as stream:
            command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
            process = subprocess.Popen(command, stdout=stream, stderr=subprocess.STDOUT)
        try:
            wait_for_port("127.0.0.1", port, process, output=output)
            yield ObjectStore(f"http://127.0.0.1:{port}")
        finally:
            process.terminate()
            process.wait()
