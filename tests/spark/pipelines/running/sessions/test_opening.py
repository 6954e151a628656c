"""What a driver is started with."""

from __future__ import annotations

import re
from pathlib import Path

from moldau.spark.pipelines.running.sessions.opening import driver_settings


def test_the_logging_that_a_driver_is_told_of_is_there(tmp_path: Path) -> None:
    """A JVM that does not find the file says nothing of it, and writes its log to the terminal."""
    options = driver_settings(tmp_path / "spark.log")["spark.driver.extraJavaOptions"]
    named = re.search(r"log4j2\.configurationFile=file://([^\"]+)", options)
    assert named is not None
    assert Path(named[1]).is_file()
