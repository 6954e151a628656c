"""The document is what is routed, and the proxy does what the document says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import requests
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as running
from schemathesis.openapi import from_url

from moldau.rest.application import all_operations
from moldau.rest.openapi.document import document
from moldau.rest.settings import Authentication, RestSettings
from tests.rest.proxies import WAIT_S_MAX, Proxy

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
    # Streams: one has no end, the other answers in lines of JSON. `test_streams_answer_as_the_document_says` has them.
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


EXAMPLES = 25


@pytest.mark.parametrize("kafka", ["moldau"], indirect=True)
@pytest.mark.parametrize("operation_id", ["readRecords", "produceRecords"])
def test_streams_answer_as_the_document_says(proxy: Proxy, topic: str, operation_id: str) -> None:
    """The two that schemathesis cannot run by itself: one has no end, the other answers each record in a line."""
    proxy.create_topic(topic)
    described: Any = from_url(f"{proxy.url}/openapi.json")
    found = [each.ok() for each in described.get_all_operations()]
    (operation,) = (each for each in found if each.definition.raw["operationId"] == operation_id)
    statuses: list[int] = []

    @running(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=[*HealthCheck],
    )
    @given(case=operation.as_strategy())
    def judge(case: Any) -> None:
        case.path_parameters = {"cluster_id": proxy.cluster.rpartition("/")[2], "topic_name": topic}
        sent = case.as_transport_kwargs()
        with requests.request(**sent, stream=True, timeout=WAIT_S_MAX) as answer:
            assert str(answer.status_code) in operation.definition.raw["responses"]
            statuses.append(answer.status_code)
            if operation_id == "produceRecords" and answer.status_code == 200:
                codes = [json.loads(each)["error_code"] for each in answer.content.splitlines() if each]
                assert not [each for each in codes if str(each).startswith("5")]

    judge()
    assert 200 in statuses
    assert not [each for each in statuses if each >= 500]
