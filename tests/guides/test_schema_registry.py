"""The guide of the schema registry: what it shows is run."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

import moldau
from moldau.cli.registry.command import parse
from moldau.cli.registry.settings import settled
from moldau.registry.service import Settings
from tests.guides.code_blocks import blocks, run_python, run_shell
from tests.registry.running import running_registry

PAGE = "docs/guides/schema-registry.md"
pytestmark = pytest.mark.xdist_group("registry")


def test_its_examples_run(bootstrap: str, tmp_path: Path) -> None:
    with running_registry(bootstrap, "--topic", "_schemas-guide") as registry:
        address = registry.url.removeprefix("http://")
        shells = [each for each in blocks(PAGE, "sh") if "curl" in each and "-u anna" not in each]
        printed = [
            run_shell(each.replace("localhost:8081", address), cwd=tmp_path, bootstrap=bootstrap) for each in shells
        ]
        (tools,) = (each for each in blocks(PAGE, "sh") if "MOLDAU_REGISTRY" in each)
        shown = run_shell(tools.replace("localhost:8081", address), cwd=tmp_path, bootstrap=bootstrap)
        (code,) = blocks(PAGE, "python")
        run_python(code.replace("localhost:8081", address), cwd=tmp_path)
    assert '["orders-value"]' in printed[0]
    assert shown == '{"to":"Praha","parcels":2}\n{"to":"Brno","parcels":1}\n'
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in printed[1]
    assert '{"compatibility":"FULL"}' in printed[1]
    assert r'"confluent:tags\":[\"PII\"]' in printed[2]


def test_the_file_has_the_usual_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (text,) = blocks(PAGE, "properties")
    file = tmp_path / "schema-registry.properties"
    file.write_text(text)
    options: Namespace = parse(["--config", str(file)])
    found = settled(options)
    assert found.registry == Settings()
    assert [each.url for each in found.listeners] == ["http://0.0.0.0:8081"]
    assert (found.host, found.replicas, found.client["bootstrap.servers"]) == ("registry-1", 3, "localhost:9092")


def test_users_of_the_cluster_log_in(tmp_path: Path) -> None:
    (code,) = (each for each in blocks(PAGE, "sh") if "-u anna" in each)
    with moldau.run(secure=True) as broker:
        broker.add_user("anna", "secret")
        own = tmp_path / "admin.properties"
        own.write_text("".join(f"{name}={each}\n" for name, each in broker.clients.java.items()))
        arguments = ("--authentication", "passthrough", "--command-config", str(own))
        with running_registry(broker.bootstrap_servers, *arguments) as registry:
            code = code.replace("localhost:8081", registry.url.removeprefix("http://"))
            printed = run_shell(code, cwd=tmp_path, bootstrap=broker.bootstrap_servers)
    assert '"id":1,"version":1' in printed


def test_users_are_made_and_read(bootstrap: str, tmp_path: Path) -> None:
    line = run_shell("echo secret | python -m moldau registry --hash-password", cwd=tmp_path, bootstrap=bootstrap)
    users = tmp_path / "users"
    users.write_text(f"anna: {line.strip()}, admin\nbob: {line.strip()}, read\n")
    with running_registry(bootstrap, "--topic", "_schemas-users", "--users", str(users)) as registry:
        address = registry.url.removeprefix("http://")
        schema = '-H \'Content-Type: application/json\' -d \'{"schema": "\\"int\\""}\''
        asked = f"""
        curl -s -o /dev/null -w '%{{http_code}} ' {address}/subjects
        curl -s -o /dev/null -w '%{{http_code}} ' -u anna:wrong {address}/subjects
        curl -s -o /dev/null -w '%{{http_code}} ' -u bob:secret {address}/subjects
        curl -s -o /dev/null -w '%{{http_code}} ' -u bob:secret {schema} {address}/subjects/a/versions
        curl -s -o /dev/null -w '%{{http_code}} ' -u anna:secret {schema} {address}/subjects/a/versions
        """
        assert run_shell(asked, cwd=tmp_path, bootstrap=bootstrap) == "401 401 200 403 200 "
