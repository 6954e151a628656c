"""The guides to `moldau doctor` and `plan`: every check, the values that are wanted, and commands that work."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.cli.doctor import findings
from moldau.cli.doctor.machine.settings import SETTINGS
from moldau.cli.plan.figures import ASSUMED
from moldau.cli.plan.sizing import PARTITION_BYTES_PER_DAY
from tests.brokers import PROJECT
from tests.guides.code_blocks import blocks, run_shell

DOCTOR, PLANNING = "docs/guides/doctor.md", "docs/guides/planning.md"


def names() -> Iterator[str]:
    """Of checks: constants in the calls that make findings."""
    for path in Path(findings.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                at = {"Finding": 1, "ok": 0, "_limits": 0, "_spread": 0}.get(node.func.id)
                named = node.args[at] if at is not None and len(node.args) > at else None
                if isinstance(named, ast.Constant):
                    yield str(named.value)


def test_every_check_is_in_the_guide() -> None:
    page = (PROJECT / DOCTOR).read_text()
    found = {*names(), *(setting.key for setting in SETTINGS)}
    assert len(found) > 50
    assert not [name for name in found if f"`{name}`" not in page]


def test_the_guide_names_no_check_that_is_gone() -> None:
    rows = re.findall(r"^\| (`[^|]+`) \|", (PROJECT / DOCTOR).read_text(), re.MULTILINE)
    told = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
    there = {*names(), *(setting.key for setting in SETTINGS), "net.ipv4.tcp_wmem", "net.ipv4.tcp_rmem"}
    assert told - there == set()


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda each: each.key)
def test_wanted_values_are_those_of_the_guide(setting: object) -> None:
    assert isinstance(setting, tuple)
    key, wanted = setting[0], setting[1]
    (row,) = [
        line for line in (PROJECT / DOCTOR).read_text().splitlines() if line.startswith("|") and f"`{key}`" in line
    ]
    assert f"| {wanted} |" in row


def test_figures_of_the_guide() -> None:
    page = (PROJECT / PLANNING).read_text()
    rates = re.findall(r"^\| [^|]+ \| `--[a-z-]+` \| ([0-9]+) MB/s \|$", page, re.MULTILINE)
    assert [int(each) * 10**6 for each in rates] == [ASSUMED.producer, ASSUMED.consumer, ASSUMED.broker, ASSUMED.disk]
    assert f"{PARTITION_BYTES_PER_DAY // 10**9} GB per partition" in page


@pytest.mark.parametrize("page", [DOCTOR, PLANNING])
def test_commands_work(page: str, bootstrap: str, tmp_path: Path) -> None:
    (block,) = blocks(page, "sh")
    lines = [line for line in block.splitlines() if "--watch" not in line and "--measure" not in line]
    assert len(lines) >= 4
    # A machine may have problems: exit code 1 says so, and 2 that the command is wrong.
    script = "".join(f"{line.replace('kafka-1:9092', bootstrap)} || [ $? = 1 ]\n" for line in _without_comments(lines))
    assert "partitions" in run_shell(script, cwd=tmp_path, bootstrap=bootstrap)


def _without_comments(lines: list[str]) -> Iterator[str]:
    return (line.partition(" #")[0].rstrip() for line in lines)
