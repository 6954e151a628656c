"""A broker that goes away under a running tool, and comes back."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from moldau.embedded import EmbeddedBroker
from tests.cli.conftest import command, environment, run_tool

WAIT_S_MAX = 60.0

Run = Callable[..., EmbeddedBroker]


def send(broker: EmbeddedBroker, topic: str, *, line: str) -> None:
    assert run_tool(broker.bootstrap_servers, "produce", topic, stdin=line).stderr == ""


def test_a_reader_says_so_and_goes_on(moldau_run: Run, tmp_path: Path, moldau_topic: str) -> None:
    broker = moldau_run(data_dir=tmp_path)
    send(broker, moldau_topic, line="before\n")
    arguments, variables = command("consume", moldau_topic, "--from-beginning"), environment(broker.bootstrap_servers)
    with subprocess.Popen(arguments, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as reader:
        assert reader.stdout is not None
        assert reader.stderr is not None
        assert reader.stdout.readline() == b"before\n"
        broker.kill()
        said = reader.stderr.readline().decode()
        assert said == f"moldau consume: no broker answers at {broker.bootstrap_servers}; waiting for one\n"
        send(moldau_run(data_dir=tmp_path, port=broker.port), moldau_topic, line="after\n")
        assert reader.stdout.readline() == b"after\n"
        reader.terminate()


def test_a_writer_waits_for_it_and_loses_nothing(moldau_run: Run, tmp_path: Path, moldau_topic: str) -> None:
    broker = moldau_run(data_dir=tmp_path)
    assert run_tool(broker.bootstrap_servers, "topics", "create", moldau_topic).returncode == 0
    arguments, variables = command("produce", moldau_topic, "-o", "json"), environment(broker.bootstrap_servers)
    with subprocess.Popen(
        arguments, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as writer:
        assert writer.stdin is not None
        writer.stdin.write(b"before\n")
        writer.stdin.flush()
        assert (
            run_tool(broker.bootstrap_servers, "consume", moldau_topic, "--from-beginning", "-n", "1").stdout
            == "before\n"
        )
        broker.kill()
        writer.stdin.write(b"during\n")
        writer.stdin.flush()
        again = moldau_run(data_dir=tmp_path, port=broker.port)
        printed, _ = writer.communicate(b"after\n", timeout=WAIT_S_MAX)
    assert (writer.returncode, len(printed.splitlines())) == (0, 3)
    read = run_tool(again.bootstrap_servers, "consume", moldau_topic, "--from-beginning", "-e")
    assert read.stdout.split() == ["before", "during", "after"]
