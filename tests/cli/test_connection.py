"""How the tools reach a cluster, and what they say when they do not."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest

from moldau.cli.connection import check_servers, read_properties, split_pair
from moldau.cli.failures import UsageError
from moldau.client.addresses import addresses_of
from tests.cli.conftest import run_tool


@pytest.fixture
def nobody() -> str:
    """An address where nothing listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{held.getsockname()[1]}"


@pytest.mark.parametrize("arguments", [("topics", "list"), ("produce", "t")], ids=" ".join)
def test_servers_that_are_named_and_empty_are_not_the_usual_ones(bootstrap: str, arguments: tuple[str, ...]) -> None:
    finished = run_tool(bootstrap, *arguments, "-b", "")
    expected = f"moldau {arguments[0]}: --bootstrap-server: it names no broker; expected HOST:PORT\n"
    assert (finished.returncode, finished.stdout, finished.stderr) == (2, "", expected)


@pytest.mark.parametrize(
    "arguments", [("topics", "list"), ("produce", "t"), ("consume", "t")], ids=lambda words: words[0]
)
def test_no_broker_is_said_soon_and_in_one_line(nobody: str, arguments: tuple[str, ...]) -> None:
    begun = time.monotonic()
    finished = run_tool(nobody, *arguments)
    assert finished.returncode == 1
    assert finished.stdout == ""
    assert finished.stderr == (f"moldau {arguments[0]}: no broker answers at {nobody}; start one with: moldau start\n")
    assert time.monotonic() - begun < 5


def test_a_listener_that_is_no_broker_is_not_waited_for_for_ever() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        finished = run_tool(address, "topics", "list", "--timeout", "1")
    assert finished.returncode == 1
    assert finished.stderr.startswith(f"moldau topics: something listens at {address} but gave no answer in 1 s")
    assert finished.stderr.count("\n") == 1


def test_the_option_wins_over_the_environment(nobody: str) -> None:
    finished = run_tool("127.0.0.1:1", "topics", "list", "--bootstrap-server", nobody)
    assert nobody in finished.stderr


@pytest.mark.parametrize(
    ("server", "address"),
    [
        ("localhost:9092", ("localhost", 9092)),
        ("PLAINTEXT://broker:1", ("broker", 1)),
        ("broker", ("broker", 9092)),
        ("[::1]:9093", ("::1", 9093)),
        ("[::1]", ("::1", 9092)),
    ],
)
def test_forms_of_a_bootstrap_server(server: str, address: tuple[str, int]) -> None:
    assert addresses_of(server) == [address]


@pytest.mark.parametrize("server", ["broker:kafka", "broker:0", "broker:70000"])
def test_a_port_is_a_number(server: str) -> None:
    with pytest.raises(UsageError, match="expected HOST:PORT"):
        check_servers(server)


def test_client_properties_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("# how to reach it\n\nsecurity.protocol = SSL\nssl.ca.location=/etc/ca=1.pem\n")
    assert read_properties(str(file)) == {"security.protocol": "SSL", "ssl.ca.location": "/etc/ca=1.pem"}
    with pytest.raises(UsageError, match="No such file"):
        read_properties(str(tmp_path / "missing"))


@pytest.mark.parametrize("text", ["sasl.password: s3cret", "sasl.password s3cret", "  sasl.password:s3cret"])
def test_a_password_that_is_written_wrong_is_not_told(text: str, tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text(f"{text}\n")
    for do in (lambda: read_properties(str(path)), lambda: split_pair(text, option="-X")):
        with pytest.raises(UsageError, match=r"expected KEY=VALUE, not 'sasl\.password' and more$"):
            do()
