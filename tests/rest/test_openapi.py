"""The document is what is routed, and the proxy does what the document says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from moldau.rest.application import all_operations
from moldau.rest.openapi.document import document
from moldau.rest.settings import Authentication, RestSettings
from tests.rest.proxies import Proxy

pytestmark = pytest.mark.xdist_group("rest")

SETTINGS = RestSettings(client={"bootstrap.servers": "localhost:9092"})
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"


def test_every_operation_has_a_name_of_its_own_and_schemas_that_are_there() -> None:
    told = document(all_operations(SETTINGS), SETTINGS)
    found = [each for path in told["paths"].values() for each in path.values()]
    names = [each["operationId"] for each in found]
    assert len(names) > 60
    used = set(re.findall(r"#/components/schemas/(\w+)", str(told)))
    assert used <= set(told["components"]["schemas"])
    assert set(told["components"]["schemas"]) <= used


def test_a_401_is_told_where_it_can_be() -> None:
    secured = RestSettings(client={}, authentication=Authentication.BASIC)
    for settings, is_told in ((SETTINGS, False), (secured, True)):
        told = document(all_operations(settings), settings)
        assert all(("401" in each["responses"]) is is_told for path in told["paths"].values() for each in path.values())


def test_only_what_is_enabled_is_told() -> None:
    only = RestSettings(client={}, is_v2=False)
    assert all(path.startswith("/v3/") for path in document(all_operations(only), only)["paths"])


def schemathesis(proxy: Proxy, folder: Path, *arguments: str) -> None:
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{proxy.url}/openapi.json", "--checks", CHECKS]
    # Streams: one has no end, the other answers in lines of JSON. They are read as such in other tests.
    command += [
        "--exclude-operation-id",
        "readRecords",
        "--exclude-operation-id",
        "produceRecords",
        "--no-color",
        "--seed",
        "1",
        "--request-timeout",
        "30",
    ]
    command += ["--suppress-health-check", "all", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=1_500, check=False)
    assert done.returncode == 0, done.stdout[-8_000:] + done.stderr[-2_000:]


@pytest.mark.parametrize("kafka", ["moldau"], indirect=True)
def test_schemathesis_finds_nothing(proxy: Proxy, tmp_path: Path) -> None:
    proxy.create_topic(f"t-{tmp_path.name}")
    schemathesis(proxy, tmp_path, "--phases", "fuzzing", "--max-examples", "3")


@pytest.mark.long
@pytest.mark.timeout(1_600)
def test_schemathesis_finds_nothing_for_long(proxy: Proxy, tmp_path: Path) -> None:
    proxy.create_topic(f"t-{tmp_path.name}")
    schemathesis(proxy, tmp_path, "--phases", "examples,coverage,fuzzing", "--max-examples", "60")
