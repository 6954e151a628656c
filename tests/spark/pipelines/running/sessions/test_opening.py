"""What a driver is started with."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from moldau.spark.pipelines.running.sessions.opening import driver_settings

SETTINGS = {"spark.hadoop.fs.s3a.secret.key": "hunter2", "spark.hadoop.fs.s3a.endpoint": "http://store:9000"}
BY_SESSION = f"""
from moldau.spark.pipelines.running.sessions.opening import open_session
spark = open_session("secrets", "local[1]", {SETTINGS}, log=log)
gateway, hadoop = spark.sparkContext._gateway, spark.sparkContext._jsc.hadoopConfiguration()
"""
BY_FOLDER = f"""
from moldau.spark.pipelines.running.sessions.opening import reach_without_session
folder = reach_without_session("s3a://bucket/shop", {SETTINGS}, log=lambda: log)
gateway, hadoop = folder.gateway, folder.configuration
"""
TELL = """
print(pathlib.Path(f"/proc/{gateway.proc.pid}/cmdline").read_text().split(chr(0)), hadoop.get("fs.s3a.secret.key"))
"""


def test_the_logging_that_a_driver_is_told_of_is_there(tmp_path: Path) -> None:
    """A JVM that does not find the file says nothing of it, and writes its log to the terminal."""
    options = driver_settings(tmp_path / "spark.log")["spark.driver.extraJavaOptions"]
    named = re.search(r"log4j2\.configurationFile=file://([^\"]+)", options)
    assert named is not None
    assert Path(named[1]).is_file()


@pytest.mark.parametrize("opened", [BY_SESSION, BY_FOLDER])
def test_a_store_gets_its_secret_and_no_command_line_does(tmp_path: Path, opened: str) -> None:
    """Whoever is on the machine may look at command lines."""
    program = f"import pathlib\nlog = pathlib.Path({str(tmp_path / 'spark.log')!r})\n{opened}{TELL}"
    told = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    words, _, secret = told.rpartition(" ")
    assert "spark.hadoop.fs.s3a.endpoint=http://store:9000" in words
    assert ("spark.master=local[1]" in words) is (opened == BY_SESSION), "spark-submit prepares more for some masters"
    assert "hunter2" not in words
    assert secret.strip() == "hunter2"
