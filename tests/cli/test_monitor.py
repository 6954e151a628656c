"""`moldau monitor` as a user runs it: one look for cron, and a service that answers over HTTP."""

from __future__ import annotations

import json
import re
import select
import socket
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.cli.conftest import Tool, run_tool
from tests.cli.monitors import Service, file_of, running
from tests.monitor.worlds import commit

Done = Callable[..., str]


@pytest.fixture(scope="module")
def read_group(bootstrap: str) -> tuple[str, str]:
    """A topic of two partitions and a group that has read two of five records of the first one."""
    name = f"orders-{uuid.uuid4().hex[:8]}"
    assert run_tool(bootstrap, "topics", "create", name, "--partitions", "2").returncode == 0
    producer = Producer({"bootstrap.servers": bootstrap})
    for _ in range(5):
        producer.produce(name, b"x", partition=0, timestamp=time.time_ns() // 1_000_000 - 100_000)
    producer.flush(20)
    group = f"billing-{uuid.uuid4().hex[:8]}"
    commit(bootstrap, group, name, {0: 2})
    return name, group


def test_one_look_tells_of_groups_in_trouble(
    tool: Tool, bootstrap: str, read_group: tuple[str, str], tmp_path: Path
) -> None:
    topic, group = read_group
    finished = tool("monitor", "--once", "--config", file_of(tmp_path, bootstrap, group))
    assert (finished.returncode, finished.stderr) == (1, "")
    header, line = (each.split() for each in finished.stdout.splitlines())
    assert header == ["CLUSTER", "GROUP", "STATUS", "LAG", "SECONDS", "PARTITIONS", "COMPLETE", "TROUBLE"]
    # A commit of this very second is a window of one offset, which stalls; a second later it has stopped.
    assert line[:4] == ["main", group, "ERR", "3"]
    assert 100 <= float(line[4]) < 200
    assert line[5:7] == ["2", "0.0"]
    assert re.fullmatch(f"{topic}-0:(STOP|STALL)", line[7])
    assert (tmp_path / "lag.sqlite").exists(), "beside the file that names it"

    allowing = file_of(tmp_path, bootstrap, group, "[rules]\nallowed-lag = 3")
    finished = tool("monitor", "--once", "--config", allowing, "-o", "json")
    (row,) = json.loads(finished.stdout)
    assert finished.returncode == 0
    assert (row["group"], row["status"], row["lag"], row["trouble"]) == (group, "OK", 3, [])
    assert (row["type"].lower(), row["state"], row["members"]) == ("classic", "Empty", 0)


@pytest.fixture(scope="module")
def service(bootstrap: str, read_group: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("monitor")
    with running(bootstrap, "--config", file_of(folder, bootstrap, read_group[1])) as found:
        yield found


def test_it_says_what_it_watches(service: Service) -> None:
    assert service.introduction[0] == "watching main every 0.5 s"
    assert service.introduction[1].startswith("history in ")
    assert service.introduction[2].endswith("(/v3/kafka /metrics /health /ready)")


def test_it_says_how_it_is(service: Service) -> None:
    assert service.ask("/burrow/admin") == (200, "GOOD")
    assert service.ask("/health") == (200, '{"status":"healthy","reasons":[]}')
    code, text = service.ask("/ready")
    assert (code, json.loads(text)) == (
        200,
        {"status": "ready", "clusters": {"main": {"looked_at": True, "failure": None}}},
    )


def test_burrows_lists(service: Service, read_group: tuple[str, str]) -> None:
    topic, group = read_group
    assert service.json("/v3/kafka") == {"error": False, "message": "cluster list returned", "clusters": ["main"]}
    assert topic in service.json("/v3/kafka/main/topic")["topics"]
    assert service.json(f"/v3/kafka/main/topic/{topic}")["offsets"] == [5, 0]
    assert service.json(f"/v3/kafka/main/topic/{topic}/consumers")["consumers"] == [group]
    assert service.json("/v3/kafka/main/consumer")["consumers"] == [group]


def test_burrows_consumer(service: Service, read_group: tuple[str, str]) -> None:
    topic, group = read_group
    (first, second) = service.json(f"/v3/kafka/main/consumer/{group}")["topics"][topic]
    assert first["offsets"][:9] == [None] * 9
    assert {**first["offsets"][9], "timestamp": 0, "observedAt": 0} == {
        "offset": 2, "timestamp": 0, "observedAt": 0, "lag": 3,
    }  # fmt: skip
    assert (first["current-lag"], first["owner"], first["client_id"]) == (3, "", "")
    assert second == {"offsets": [], "owner": "", "client_id": "", "current-lag": 0}


def test_burrows_verdict(service: Service, read_group: tuple[str, str]) -> None:
    topic, group = read_group
    path = f"/v3/kafka/main/consumer/{group}"
    status = service.until(f"{path}/status", lambda found: found["status"]["partitions"][0]["status"] == "STOP")[
        "status"
    ]
    everything = service.json(f"{path}/lag")["status"]
    bad = status["partitions"][0]
    assert {*status} == {
        "cluster", "group", "status", "complete", "partitions", "partition_count", "maxlag", "totallag",
        "max_lag_seconds",
    }  # fmt: skip
    assert {*bad} == {
        "topic", "partition", "owner", "client_id", "status", "start", "end", "current_lag", "complete", "lag_seconds",
    }  # fmt: skip
    assert (status["status"], status["totallag"], status["partition_count"], status["complete"]) == ("ERR", 3, 2, 0)
    assert (bad["topic"], bad["current_lag"], bad["complete"], bad["end"]["offset"]) == (topic, 3, 0.1, 2)
    assert [each["status"] for each in everything["partitions"]] == ["STOP", "OK"]
    assert status["maxlag"]["partition"] == 0
    assert service.json(f"{path}/changes")["changes"][-1]["before"] == "NOTFOUND"


def test_what_is_not_there(service: Service) -> None:
    code, text = service.ask("/v3/kafka/main/consumer/nobody/status")
    assert (code, json.loads(text)["status"]["status"]) == (404, "NOTFOUND")
    for path, message in (
        ("/v3/kafka/other/topic", "cluster not found"),
        ("/v3/kafka/main/topic/none", "cluster or topic not found"),
        ("/v3/kafka/main/consumer/nobody", "cluster or consumer not found"),
        ("/v3/kafka/other", "cluster module not found"),
        ("/v3/config/notifier/none", "notifier module not found"),
        ("/v2/kafka", "invalid request type"),
        ("/v3/config/none", "invalid request type"),
    ):
        code, text = service.ask(path)
        content = json.loads(text)
        assert (code, content["error"], content["message"]) == (404, True, message)
    assert service.ask("/v3/kafka", "POST", b"")[0] == 405


def test_burrows_configuration(service: Service, bootstrap: str, read_group: tuple[str, str]) -> None:
    assert service.json("/v3/config")["httpserver"]["default"]["address"] == "127.0.0.1:0"
    modules = {
        kind: service.json(f"/v3/config/{kind}")["modules"]
        for kind in ("storage", "evaluator", "cluster", "consumer", "notifier")
    }
    assert modules == {
        "storage": ["default"], "evaluator": ["default"], "cluster": ["main"], "consumer": ["main"], "notifier": [],
    }  # fmt: skip
    assert service.json("/v3/config/storage/default")["module"]["intervals"] == 10
    assert service.json("/v3/config/evaluator/default")["module"]["class-name"] == "caching"
    assert service.json("/v3/config/consumer/main")["module"]["group-allowlist"] == f"^{read_group[1]}$"
    detail = service.json("/v3/kafka/main")
    assert detail == service.json("/v3/config/cluster/main")
    assert detail["module"]["servers"] == bootstrap.split(",")


def test_the_level_of_the_log_can_be_set(service: Service) -> None:
    assert service.json("/v3/admin/loglevel")["level"] == "info"
    assert service.json("/v3/admin/loglevel", "POST", b'{"level": "warn"}')["message"] == "set log level"
    assert service.json("/v3/admin/loglevel")["level"] == "warn"
    assert service.ask("/v3/admin/loglevel", "POST", b'{"level": "loud"}')[0] == 404
    assert service.ask("/v3/admin/loglevel", "POST", b"warn")[0] == 400
    assert service.ask("/v3/admin/loglevel", "POST", bytes(20_000))[0] == 413
    service.json("/v3/admin/loglevel", "POST", b'{"level": "info"}')


SAMPLE = re.compile(r'[a-z_]+(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? -?[0-9.e+-]+')


def test_metrics_are_in_prometheus_format(service: Service, read_group: tuple[str, str]) -> None:
    topic, group = read_group
    code, text = service.ask("/metrics")
    assert code == 200
    lines = text.splitlines()
    samples = [line for line in lines if not line.startswith("#")]
    assert not [line for line in samples if not SAMPLE.fullmatch(line)]
    assert len({line.rpartition(" ")[0] for line in samples}) == len(samples), "each is there once"
    typed = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len({*typed}) == len(typed), "samples of one name stand together"
    assert f'burrow_kafka_consumer_lag_total{{cluster="main",consumer_group="{group}"}} 3' in samples
    assert f'kafka_consumergroup_lag{{consumergroup="{group}",partition="0",topic="{topic}"}} 3' in samples
    assert f'kafka_consumergroup_lag_sum{{consumergroup="{group}",topic="{topic}"}} 3' in samples
    (seconds,) = [
        float(line.rpartition(" ")[2])
        for line in samples
        if line.startswith("kafka_consumergroup_group_max_lag_seconds") and group in line
    ]
    assert 100 <= seconds < 300


def test_a_consumer_that_is_deleted_is_seen_anew(service: Service, read_group: tuple[str, str]) -> None:
    path = f"/v3/kafka/main/consumer/{read_group[1]}"
    assert service.json(path, "DELETE")["message"] == "consumer group removed"
    service.until("/v3/kafka/main/consumer", lambda found: found["consumers"] == [read_group[1]])
    assert service.json(f"{path}/topic/{read_group[0]}", "DELETE")["message"] == "consumer group removed"
    assert service.json("/v3/kafka/other/consumer/x", "DELETE")["message"] == "consumer group removed"


def test_a_cluster_that_is_not_there_does_not_hide_the_others(bootstrap: str, tool: Tool, tmp_path: Path) -> None:
    path = tmp_path / "monitor.toml"
    path.write_text(
        "interval = 0.5\nmetrics = ['kafka_exporter']\n"
        f"[clusters.one]\nbootstrap-server = '{bootstrap}'\n[clusters.two]\nbootstrap-server = 'localhost:1'\n"
    )
    finished = tool("monitor", "--once", "--config", str(path))
    assert finished.returncode == 1
    assert finished.stderr == "moldau monitor: cluster two: no broker answers at localhost:1\n"
    assert {line.split()[0] for line in finished.stdout.splitlines()[1:]} == {"one"}
    with running(bootstrap, "--config", str(path), is_ready=False) as service:
        service.until("/v3/kafka", lambda found: service.ask("/v3/kafka/one/topic")[0] == 200)
        assert service.json("/v3/kafka")["clusters"] == ["one", "two"]
        assert service.ask("/burrow/admin/ready") == (503, "STARTING")
        code, text = service.ask("/ready")
        assert (code, json.loads(text)["clusters"]["two"]) == (
            503,
            {"looked_at": False, "failure": "no broker answers at localhost:1"},
        )
        assert service.ask("/health")[0] == 200, "the monitor itself is fine"
        lines = service.ask("/metrics")[1].splitlines()
        assert {'moldau_monitor_up{cluster="one"} 1', 'moldau_monitor_up{cluster="two"} 0'} <= {*lines}
        assert not [line for line in lines if line.startswith("burrow")]
        assert 'kafka_brokers{cluster="one"}' in {line.rpartition(" ")[0] for line in lines}


BAD_FILES = [
    ("[clusters.x]", "FILE: clusters.x: expected bootstrap-server, or a profile"),
    ("[clusters.x]\nbootstrap-server = 'x:y'", "--bootstrap-server: 'x:y' has no port number; expected HOST:PORT"),
    ("[clusters.x]\nprofile = 'none-of-it'", "there is no profile 'none-of-it'"),
    ('[clusters.x]\nbootstrap-server=\'a\'\nclient = {"security.protocol" = "tls"}', "security.protocol=tls: expected"),
    ("intervall = 1", "FILE: unknown key intervall; did you mean interval?"),
    ("interval =", "FILE: Invalid value"),
]


@pytest.mark.parametrize(("text", "message"), BAD_FILES)
def test_a_wrong_file_is_one_line(tool: Tool, tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "monitor.toml"
    path.write_text(text)
    finished = tool("monitor", "--config", str(path))
    assert (finished.returncode, finished.stdout, finished.stderr.count("\n")) == (2, "", 1)
    assert finished.stderr.startswith(f"moldau monitor: {message.replace('FILE', str(path))}")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("--config none.toml", 2, "cannot read none.toml: No such file or directory"),
        ("--interval often", 2, "argument --interval: 'often' is no time to wait"),
        ("--listen 127.0.0.1", 2, "--listen: '127.0.0.1': expected HOST:PORT"),
        ("--listen everywhere:http", 2, "--listen: 'everywhere:http': expected HOST:PORT"),
        ("--listen 192.0.2.1:8000", 1, "cannot listen at 192.0.2.1:8000: "),
        ("--history /", 1, "/ can't be used as history: unable to open database file"),
        ("--log-level loud", 2, "argument --log-level: 'loud' is no level"),
        ("--once -b localhost:1", 1, "no broker answers at localhost:1; start one with: moldau start"),
        ("--onse", 2, "unknown option --onse; did you mean --once?"),
    ],
)
def test_bad_use_is_one_line(tool: Tool, words: str, code: int, message: str) -> None:
    finished = tool("monitor", *words.split())
    assert (finished.returncode, finished.stdout, finished.stderr.count("\n")) == (code, "", 1)
    assert finished.stderr.startswith(f"moldau monitor: {message}")


def test_headers_without_an_end_are_refused(bootstrap: str) -> None:
    """They were kept in memory, however many there were."""
    with running(bootstrap) as service:
        host, port = service.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), 20) as stranger:
            stranger.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nA: ")
            while not select.select([stranger], [], [], 0.05)[0]:
                stranger.sendall(b"a" * 5_000)
            assert stranger.recv(100).startswith(b"HTTP/1.1 431 ")
        with socket.create_connection((host, int(port)), 20) as impatient:
            impatient.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 50)
        assert service.ask("/health")[0] == 200
