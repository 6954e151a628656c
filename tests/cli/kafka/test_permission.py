"""A cluster where nobody may do anything: each tool says so in one line, and nothing is changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import moldau
from moldau.cli.main import main

PROPERTIES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",
}
CLUSTER = "Cluster authorization failed."
REFUSED = [
    ("leader-election --election-type preferred --all-topic-partitions", "Not authorized to perform leader election"),
    ("reassign-partitions --list", "Cluster authorization failed."),
    ("reassign-partitions --execute --reassignment-json-file PLAN", CLUSTER),
    ("reassign-partitions --generate --topics-to-move-json-file TOPICS --broker-list 0", "Topic authorization failed."),
    ("cluster unregister --id 7", CLUSTER),
    ("metadata-quorum describe --status", CLUSTER),
    ("acls --list", CLUSTER),
    ("acls --add --allow-principal User:mallory --cluster", CLUSTER),
    ("acls --remove --force --topic orders", CLUSTER),
    ("log-dirs --describe", CLUSTER),
    ("delegation-tokens --create --max-life-time-period -1", "Delegation tokens cannot be handled"),
]


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with moldau.run(overrides=PROPERTIES) as broker:
        yield broker.bootstrap_servers


@pytest.mark.parametrize(("line", "told"), REFUSED, ids=lambda text: text[:40])
def test_nothing_is_permitted(
    bootstrap: str, line: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"topic": "orders", "partition": 0, "replicas": [0]}]
    files = {"PLAN": {"partitions": rows}, "TOPICS": {"topics": [{"topic": "orders"}]}}
    for name, document in files.items():
        (tmp_path / name).write_text(json.dumps(document))
    words = [str(tmp_path / each) if each in files else each for each in line.split()]
    assert main([*words, "--bootstrap-server", bootstrap]) == 1
    err = capsys.readouterr().err
    assert told in err
    assert err.count("\n") == 1


def test_features_are_shown_and_stay(bootstrap: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["features", "downgrade", "--feature", "group.version=0", "--bootstrap-server", bootstrap]) == 1
    out, err = capsys.readouterr()
    assert out == f"Could not downgrade group.version to 0. {CLUSTER}\n"
    assert err == "moldau features: 1 out of 1 operation(s) failed.\n"
