"""A JavaScript client: @kafkajs/confluent-schema-registry."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.clients.toolchains import MissingToolchain, built, run, sources
from tests.registry.running import RunningRegistry

HERE = Path(__file__).parent / "javascript"
pytestmark = pytest.mark.xdist_group("registry")


@pytest.fixture(scope="module")
def command() -> list[str]:
    def build(target: Path) -> None:
        for each in sources(HERE):
            (target / each.name).write_bytes(each.read_bytes())
        run("npm", "ci", "--no-audit", "--no-fund", directory=target)

    try:
        return ["node", str(built("javascript-registry", sources(HERE), build) / "client.js")]
    except MissingToolchain as missing:
        pytest.skip(str(missing))


def test_a_javascript_application(registry: RunningRegistry, subject: str, command: list[str]) -> None:
    finished = subprocess.run(
        [*command, registry.url, subject], capture_output=True, text=True, timeout=60, check=False
    )
    assert finished.returncode == 0, finished.stderr
    found = json.loads(finished.stdout)
    assert "incompatible" in found.pop("refused")
    assert found == {
        "same": True,
        "grew": True,
        "latest": True,
        "read": {"id": 7},
        "others": [{"id": 7}, {"id": "7"}],
    }
