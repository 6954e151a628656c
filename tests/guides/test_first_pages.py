"""README, getting started and testing: every block of Python and every command of the tools does what the page says."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import moldau
from tests.guides.code_blocks import blocks, run, run_python, run_shell

GETTING_STARTED = "docs/guides/getting-started.md"
TESTING = "docs/guides/testing-with-moldau.md"


@pytest.fixture
def servers() -> Iterator[str]:
    """A broker that nobody has used, as a reader's."""
    with moldau.run() as broker:
        yield broker.bootstrap_servers


def test_getting_started_in_python(servers: str, tmp_path: Path) -> None:
    produce, consume, transact = blocks(GETTING_STARTED, "python")
    run_python(produce, cwd=tmp_path, bootstrap=servers)
    assert run_python(consume, cwd=tmp_path, bootstrap=servers) == "b'customer-7' b'two coffees'\n"
    run_python(transact, cwd=tmp_path, bootstrap=servers)
    invoices = "moldau consume invoices --from-beginning -e -X isolation.level=read_committed --show key,value"
    assert run_shell(invoices, cwd=tmp_path, bootstrap=servers) == "customer-7\tpaid: two coffees\n"


@pytest.mark.skipif(shutil.which("jq") is None, reason="the guide pipes through jq")
def test_getting_started_with_the_tools(servers: str, tmp_path: Path) -> None:
    tools, pipe = [block for block in blocks(GETTING_STARTED, "sh") if "moldau topics" in block]
    printed = run_shell(tools, cwd=tmp_path, bootstrap=servers)
    assert "created orders" in printed
    assert re.search(r"^\d/\d customer-7: hello$", printed, re.MULTILINE)
    run_shell(pipe, cwd=tmp_path, bootstrap=servers)
    copy = run_shell(
        "moldau topics list; moldau consume copy --from-beginning -e -f '%k=%v\n'", cwd=tmp_path, bootstrap=servers
    )
    assert "customer-7=hello" in copy
    assert "orders" not in copy


@pytest.mark.parametrize("page", ["README.md", TESTING])
def test_fixtures_and_programs(page: str, tmp_path: Path) -> None:
    """A block that begins with a file's name is that file of a project; any other is a program."""
    programs = []
    for block in blocks(page, "python"):
        name = re.match(r"# (\w+\.py)\n", block)
        if name:
            (tmp_path / name[1]).write_text(block)
        else:
            programs.append(block)
    passed = run([sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider"], cwd=tmp_path)
    assert re.search(r"^\d passed", passed, re.MULTILINE)
    assert programs
    for program in programs:
        run_python(program, cwd=tmp_path)


def test_a_taste(servers: str, tmp_path: Path) -> None:
    """What the README shows is what is printed."""
    (taste,) = [block for block in blocks("README.md", "console") if "moldau topics" in block]
    commands = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", taste, re.MULTILINE)
    assert commands[0][0].startswith("moldau start")
    for command, expected in commands[1:]:
        assert run_shell(command, cwd=tmp_path, bootstrap=servers) == expected
