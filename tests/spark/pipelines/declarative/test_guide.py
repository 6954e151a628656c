"""The guide of Spark's own pipelines: its project and its commands, taken out of it and run one after the other."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import moldau
from moldau.spark.source import MoldauDataSource
from tests.brokers import PROJECT
from tests.guides.code_blocks import ADDRESS, blocks
from tests.spark.topics import Topics

pytest.importorskip("yaml", reason="the extra `pipelines` is not installed")

GUIDE = "docs/guides/declarative-pipelines.md"
RUN_S_MAX = 600.0
FILE = re.compile(r"^`(shop/[\w./-]+)`:\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)
OPTION = re.compile(r'\.option\("([\w.]+)", "(.*)"\)')
LATER = '{"id": "o-4", "customer": "bob", "amount": 500.0, "at": "2026-01-31T12:03:00Z"}'
GRAPH = """\
pipeline shop

materialized view customers
└─ streaming table orders
   └─ stream topic orders  (what does not fit into topic orders.dead-letters)

sink large_orders  (into topic large-orders)
└─ streaming table orders
   └─ stream topic orders  (what does not fit into topic orders.dead-letters)
"""


@pytest.fixture
def servers() -> Iterator[str]:
    with moldau.run() as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def files() -> dict[str, str]:
    return dict(FILE.findall((PROJECT / GUIDE).read_text()))


def test_the_guide_shows_the_example(files: dict[str, str]) -> None:
    example = PROJECT / "examples" / "shop"
    there = [path for path in example.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert files == {f"shop/{path.relative_to(example)}": path.read_text() for path in there}


def test_an_order_that_was_aborted_is_none(files: dict[str, str], servers: str) -> None:
    """The options of the project's source, asked as Spark asks them."""
    said = dict(OPTION.findall(files["shop/transformations/orders.py"]))
    topics = Topics(servers)
    topics.create_named(said["subscribe"])
    for order in ("aborted", "committed"):
        topics.transaction(said["subscribe"], [json.dumps({"id": order}).encode()], commit=order == "committed")
    source = MoldauDataSource({**said, "kafka.bootstrap.servers": servers})
    reader = source.streamReader(source.schema())
    start = reader.initialOffset()
    tasks = reader.partitions(start, reader.latestOffset(start, reader.getDefaultReadLimit()))
    read: list[Any] = [batch for task in tasks for batch in reader.read(task)]
    assert [value["id"] for batch in read for value in batch.column("value").to_pylist()] == ["committed"]


@pytest.fixture
def run(servers: str, files: dict[str, str], tmp_path: Path) -> Callable[[str], str]:
    """Runs a command of the guide beside its project, which is there."""

    def run(command: str) -> str:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        ended = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", command],
            cwd=tmp_path,
            env={**os.environ, "PATH": path, "MOLDAU_BOOTSTRAP_SERVERS": servers},
            capture_output=True,
            text=True,
            timeout=RUN_S_MAX,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        # Spark's own command shows what went wrong in attempts that did not count.
        assert "Traceback" not in ended.stderr or "spark-pipelines" in command
        return ended.stdout

    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        mine = text.replace("file:///tmp/moldau-shop", f"file://{tmp_path}/storage").replace(ADDRESS, servers)
        (tmp_path / name).write_text(mine)
    return run


@pytest.mark.long
@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(2400)
def test_its_commands_do_what_it_says(run: Callable[[str], str]) -> None:
    put, graph, update, status, results, _ = blocks(GUIDE, "sh")
    run(put)
    assert run(f"{graph.strip()} --master 'local[2]'") == GRAPH
    run(f"{update.strip()} --master 'local[2]'")
    (shown,) = blocks(GUIDE, "text")
    assert run(status) == shown
    large, letters = run(results).split("\n", 1)
    assert large == '{"id":"o-1","amount":120.0}'
    assert "not JSON" in letters


@pytest.mark.long
@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(2400)
def test_so_does_the_command_of_spark(run: Callable[[str], str]) -> None:
    """Twice: what it made the first time is still there."""
    put, _, _, _, results, own = blocks(GUIDE, "sh")
    run(put)
    assert "Run is COMPLETED" in run(own)
    run(put.splitlines()[2].replace("<<'END'", f"<<< '{LATER}'"))
    assert "Run is COMPLETED" in run(own)
    first, second, letters = run(results).split("\n", 2)
    assert (first, second) == ('{"id":"o-1","amount":120.0}', '{"id":"o-4","amount":500.0}')
    assert "two coffees, please" in letters
