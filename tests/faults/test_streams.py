"""A Kafka Streams application with `exactly_once_v2` counts words exactly through kills of the broker."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import moldau
from tests.clients.toolchains import streams_application
from tests.faults.clients import create_topic
from tests.faults.words import Tally

pytestmark = pytest.mark.skipif(
    not (shutil.which("mvn") and shutil.which("javac")), reason="Kafka Streams needs a JDK, and Maven the first time"
)

LINES = 1_000
KILLS = 2


@pytest.mark.timeout(600)
def test_words_are_counted_once_through_kills(tmp_path: Path) -> None:
    command = streams_application()
    broker = moldau.run(data_dir=tmp_path / "data")
    address = broker.bootstrap_servers
    for topic in ("lines", "counts"):
        create_topic(address, topic)
    tally = Tally(address)
    with (tmp_path / "application.txt").open("wb") as printed:
        application = subprocess.Popen(
            [*command, address, str(tmp_path / "state")], stdout=printed, stderr=subprocess.STDOUT
        )
    try:
        tally.say(LINES)
        tally.until_told()
        for _ in range(KILLS):
            tally.say(LINES)
            broker.kill()
            broker = moldau.run(data_dir=tmp_path / "data", port=broker.port)
            tally.say(LINES)
            tally.until_told()
        assert tally.out_of_step == []
    finally:
        tally.close()
        application.kill()
        application.wait()
        broker.stop()
