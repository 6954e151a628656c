"""`moldau start` as a user runs it: what it prints, how it stops, and what it says when it can't start."""

from __future__ import annotations

import os
import pty
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

import moldau
from moldau.__main__ import INTERRUPTED
from moldau.core.config.broker import BrokerConfig
from moldau.node.announcing import banner
from moldau.node.command import configuration, parse
from moldau.node.running import BoundListener, Running

WAIT_S_MAX = 30.0


def start_command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "moldau", "start", *arguments]


@contextmanager
def started(
    *arguments: str, cwd: Path, variables: Mapping[str, str] | None = None, stdin: IO[bytes] | None = None
) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A broker's process and its port, once it has printed where it listens."""
    process = subprocess.Popen(
        start_command("--port", "0", *arguments),
        cwd=cwd,
        env={**os.environ, **(variables or {})},
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    try:
        printed = ""
        while not (found := re.search(r"listening +\S+:(\d+)\n", printed)):
            line = process.stdout.readline()
            assert line, f"it ended without listening: {printed}"
            printed += line
        yield process, int(found[1])
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def run_to_its_end(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        start_command(*arguments), cwd=cwd, capture_output=True, text=True, timeout=WAIT_S_MAX, check=False
    )


def test_closed_standard_streams_are_nobodys_file(tmp_path: Path) -> None:
    ready, told = os.pipe()
    command = " ".join(start_command("--port", "0", "--ready-fd", str(told)))
    with subprocess.Popen(["sh", "-c", f"exec {command} <&- >&- 2>&-"], cwd=tmp_path, pass_fds=(told,)) as process:
        os.close(told)
        with os.fdopen(ready) as answer:
            assert "listeners" in answer.readline()
        assert {os.readlink(f"/proc/{process.pid}/fd/{fd}") for fd in range(3)} == {os.devnull}
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_S_MAX) == 0
    assert (tmp_path / "moldau-data" / ".kafka_cleanshutdown").exists()


@pytest.fixture
def heard_hangups() -> Iterator[None]:
    """Under nohup the tests ignore SIGHUP, and so would the brokers that they start."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("heard_hangups")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_it_stops_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    with started(cwd=tmp_path) as (process, port):
        assert (tmp_path / "moldau-data" / "meta.properties").exists()
        with socket.create_connection(("127.0.0.1", port)):
            process.send_signal(number)
            assert process.wait(WAIT_S_MAX) == 0
        assert process.stdout is not None
        printed = process.stdout.read()
        assert "Traceback" not in printed
        assert f"stopping: {number.name}" in printed
        assert re.search(rf"broker stopped in \d+\.\d\d s: {number.name}\n", printed)
    assert (tmp_path / "moldau-data" / ".kafka_cleanshutdown").exists()


@pytest.mark.usefixtures("heard_hangups")
def test_it_stops_cleanly_when_its_terminal_is_closed(tmp_path: Path) -> None:
    """The kernel sends SIGHUP, and writing to the terminal fails from then on."""
    pid, terminal = pty.fork()
    if not pid:
        os.chdir(tmp_path)
        os.execv(sys.executable, start_command("--port", "0"))
    printed = b""
    while b"data  " not in printed:
        printed += os.read(terminal, 4096)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert (tmp_path / "moldau-data" / ".kafka_cleanshutdown").exists()


def test_it_goes_on_when_nobody_reads_what_it_prints(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    ready, told = os.pipe()
    command = start_command("--port", "0", "--ready-fd", str(told))
    with subprocess.Popen(command, cwd=tmp_path, stdout=writer, stderr=writer, pass_fds=(told,)) as process:
        os.close(told)
        os.close(writer)
        with os.fdopen(ready) as answer:
            assert "listeners" in answer.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_S_MAX) == 0


def test_nohup_keeps_it_from_ending_with_its_terminal(tmp_path: Path) -> None:
    command = ["nohup", *start_command("--port", "0", "--log-format", "json")]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        while " started in " not in process.stdout.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_S_MAX) == 0
        assert "stopping: SIGTERM" in process.stdout.readline()


def test_it_answers_in_well_under_a_second(tmp_path: Path) -> None:
    begun = time.monotonic()
    with started(cwd=tmp_path):
        took_s = time.monotonic() - begun
    assert took_s < 2, "three times what a busy machine needs"


def test_a_data_folder_has_one_broker(tmp_path: Path) -> None:
    with started("--data-dir", "shared", cwd=tmp_path):
        second = run_to_its_end("--port", "0", "--data-dir", "shared", cwd=tmp_path)
    assert second.returncode == 1
    assert "shared" in second.stderr
    assert "Traceback" not in second.stderr


def test_a_port_has_one_broker(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        refused = run_to_its_end("--port", port, cwd=tmp_path)
    assert refused.returncode == 1
    assert port in refused.stderr
    assert "--port" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert not (tmp_path / "moldau-data").exists()


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (("--host", "192.0.2.1", "--port", "0"), "choose an address of this machine with --host"),
        (("--host", "nowhere.invalid", "--port", "0"), "choose an address of this machine with --host"),
        (
            ("--port", "0", "--data-dir", "a-file/data"),
            "choose a directory that this user may write to with --data-dir",
        ),
        (("--port", "0", "--data-dir", "/sys/moldau-data"), "choose a directory that this user may write to"),
    ],
    ids=str,
)
def test_a_place_that_can_not_be_used_comes_with_advice(
    tmp_path: Path, arguments: tuple[str, ...], advice: str
) -> None:
    (tmp_path / "a-file").write_text("")
    refused = run_to_its_end(*arguments, cwd=tmp_path)
    assert refused.returncode == 1
    assert advice in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


def test_ctrl_c_while_it_is_being_imported_shows_no_stack_trace(tmp_path: Path) -> None:
    # A shell that runs the tests in the background has them, and what they start, ignore the signal.
    heard = ["env", "--default-signal=INT"]
    command = [*heard, sys.executable, "-X", "importtime", "-m", "moldau", "start", "--port", "0"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        # The first of many imports: those that follow take some hundred milliseconds.
        while "asyncio.constants" not in (line := process.stderr.readline()):
            assert line, "it ended by itself"
        process.send_signal(signal.SIGINT)
        try:
            _, printed = process.communicate(timeout=WAIT_S_MAX)
        finally:
            process.kill()
        assert process.returncode == INTERRUPTED
    assert "Traceback" not in printed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--override", "num.partitions=many"), ("num.partitions", "many")),
        (("--override", "log.retention.ms=0"), ("log.retention.ms",)),
        (("--override", "listeners=nonsense"), ("listeners", "nonsense")),
        (("--override", "nothing"), ("--override", "key=value")),
        (("missing.properties",), ("missing.properties",)),
        (("--port", "70000"), ("--port", "70000")),
        (("--data-dir", "server.properties"), ("server.properties",)),
    ],
    ids=str,
)
def test_a_wrong_configuration_is_named(tmp_path: Path, arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
    (tmp_path / "server.properties").write_text("")
    refused = run_to_its_end(*arguments, cwd=tmp_path)
    assert refused.returncode in (1, 2)
    assert refused.stdout == ""
    assert "Traceback" not in refused.stderr
    assert all(word in refused.stderr for word in words), refused.stderr


def test_a_dynamic_value_that_doesnt_go_with_the_configuration_is_named_and_left_out(tmp_path: Path) -> None:
    with moldau.run(data_dir=tmp_path) as broker:
        resource = ConfigResource(ConfigResource.Type.BROKER, "0")
        resource.add_incremental_config(
            ConfigEntry("log.cleaner.threads", "2", incremental_operation=AlterConfigOpType.SET)
        )
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        for changed in admin.incremental_alter_configs([resource]).values():
            changed.result()
    with moldau.run(data_dir=tmp_path, overrides={"log.cleaner.dedupe.buffer.size": str(2 << 20)}) as broker:
        assert "log.cleaner.threads=2, which was set for broker 0, does not go with" in broker.output()
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        for described in admin.describe_configs([ConfigResource(ConfigResource.Type.BROKER, "0")]).values():
            assert described.result()["log.cleaner.threads"].value == "1"


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "is damaged: it has no version"),
        (b"\x00\xff\x80=\x07", "is damaged: it has no version"),
        (b"version=1\nnode.id=0\n", "is damaged: it has no cluster.id"),
        (b"version=1\ncluster.id=\nnode.id=0\n", "is damaged: it has no cluster.id"),
        (b"version=1\ncluster.id=c\nnode.id=zero\n", "is damaged: node.id is 'zero', not a number"),
        (b"version=9\n", "unknown version 9"),
        (None, "can't be read: Is a directory"),
    ],
    ids=str,
)
def test_damaged_meta_properties_are_named_with_what_to_do(tmp_path: Path, content: bytes | None, fault: str) -> None:
    path = tmp_path / "moldau-data" / "meta.properties"
    path.parent.mkdir()
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    refused = run_to_its_end("--port", "0", cwd=tmp_path)
    (line,) = refused.stderr.splitlines()
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "moldau-data/meta.properties" in line
    assert fault in line
    assert "move it away" in line


@pytest.mark.parametrize(
    ("preparation", "words"),
    [
        ("mkdir gone && cd gone && rmdir ../gone", ("the current directory was deleted", "--data-dir")),
        ("ulimit -n 8", ("8 open files are allowed", "ulimit -n")),
        ("ulimit -n 16", ("16 open files are allowed", "ulimit -n")),
    ],
)
def test_a_place_where_no_broker_can_run_is_named(tmp_path: Path, preparation: str, words: tuple[str, ...]) -> None:
    command = f"{preparation} && exec {' '.join(start_command('--port', '0'))}"
    refused = subprocess.run(
        ["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=WAIT_S_MAX, check=False
    )
    (line,) = refused.stderr.splitlines()
    assert (refused.returncode, refused.stdout) == (1, "")
    assert all(word in line for word in words), line


def test_the_one_who_started_it_may_wait_and_end_it_through_pipes(tmp_path: Path) -> None:
    ready, told = os.pipe()
    command = start_command("--port", "0", "--ready-fd", str(told), "--stop-with-stdin")
    with subprocess.Popen(
        command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, pass_fds=(told,)
    ) as process:
        os.close(told)
        with os.fdopen(ready) as answer:
            assert '"listeners"' in answer.readline()
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(WAIT_S_MAX) == 0


def test_a_broker_that_is_stopped_while_it_starts_does_not_say_that_it_started(tmp_path: Path) -> None:
    command = start_command("--port", "0", "--stop-with-stdin")
    ended = subprocess.run(
        command, cwd=tmp_path, input="", capture_output=True, text=True, timeout=WAIT_S_MAX, check=False
    )
    assert (ended.returncode, ended.stdout) == (0, "")
    assert "stopping: standard input ended" in ended.stderr
    assert "broker stopped" in ended.stderr
    assert " started in " not in ended.stderr


def configured(*arguments: str) -> BrokerConfig:
    return configuration(parse([*arguments]))


def test_alone_it_listens_on_loopback_and_keeps_data_here() -> None:
    config = configured()
    assert [str(listener) for listener in config.listeners] == ["PLAINTEXT://127.0.0.1:9092"]
    assert config.log_dirs == ("./moldau-data",)


def test_the_command_line_wins_over_the_environment_and_that_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=2\nlog.segment.bytes=2000000\nlog.dir=/from/file\nlisteners=PLAINTEXT://:1234\n")
    monkeypatch.setenv("MOLDAU_NUM_PARTITIONS", "3")
    monkeypatch.setenv("MOLDAU_LOG_SEGMENT_BYTES", "3000000")
    config = configured(str(file), "--override", "num.partitions=4")
    assert config.int("num.partitions") == 4
    assert config.int("log.segment.bytes") == 3_000_000
    assert config.log_dirs == ("/from/file",)
    assert [listener.port for listener in config.listeners] == [1234]
    assert [listener.port for listener in configured(str(file), "--port", "5678").listeners] == [5678]
    assert configured(str(file), "--data-dir", "here").log_dirs == ("here",)


def test_the_banner_says_what_listens_and_where_the_data_is(tmp_path: Path) -> None:
    listeners = (BoundListener("PLAINTEXT", "127.0.0.1", 9092), BoundListener("INSIDE", "::1", 9093))
    running = Running(
        broker_id=1, cluster_id="c", listeners=listeners, data_dirs=(tmp_path,), metadata="ZooKeeper at h1:2181"
    )
    lines = [line.split(maxsplit=1) for line in banner(running).splitlines()[1:]]
    assert lines == [
        ["listening", "PLAINTEXT://127.0.0.1:9092"],
        ["listening", "INSIDE://[::1]:9093"],
        ["data", str(tmp_path)],
        ["metadata", "ZooKeeper at h1:2181"],
    ]


def test_a_secured_file_does_not_start_and_says_so_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("listeners=PLAINTEXT://127.0.0.1:0\nauthorizer.class.name=a.B\nssl.keystore.password=hush\n")
    refused = run_to_its_end(str(file), cwd=tmp_path)
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    assert refused.stderr.startswith("moldau start: Invalid value a.B for configuration authorizer.class.name: ")
    assert str(file) in refused.stderr
    assert "hush" not in refused.stderr
    assert not (tmp_path / "moldau-data").exists()


def test_the_environment_of_a_container_makes_a_broker(tmp_path: Path) -> None:
    variables = {
        "KAFKA_NODE_ID": "7",
        "KAFKA_LOG_DIRS": str(tmp_path / "logs"),
        "KAFKA_HEAP_OPTS": "-Xmx1G",
        "CLUSTER_ID": "4L6g3nShT-eMCtK--X86sw",
    }
    with started(cwd=tmp_path, variables=variables):
        meta = (tmp_path / "logs" / "meta.properties").read_text()
    assert "node.id=7" in meta
    assert "cluster.id=4L6g3nShT-eMCtK--X86sw" in meta
    with started(cwd=tmp_path, variables={**variables, "CLUSTER_ID": "AAAAAAAAAAAAAAAAAAAAAA"}):
        assert (tmp_path / "logs" / "meta.properties").read_text() == meta, "data that is there has its cluster"


def test_an_embedded_broker_does_not_read_what_a_shell_has_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_NODE_ID", "7")
    monkeypatch.setenv("KAFKA_SASL_JAAS_CONFIG", "PlainLoginModule required;")
    monkeypatch.setenv("CLUSTER_ID", "4L6g3nShT-eMCtK--X86sw")
    monkeypatch.setenv("MOLDAU_NODE_ID", "8")
    with moldau.run() as broker:
        meta = (broker.data_dir / "meta.properties").read_text()
    assert "node.id=8" in meta
    assert "4L6g3nShT" not in meta
