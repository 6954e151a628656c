"""The guide to values by a schema registry: its code, and every setting that there is."""

from __future__ import annotations

from pathlib import Path

from moldau.schemas.registry_client.settings import NAMES, OTHERS
from moldau.schemas.values import WRITING
from tests.brokers import PROJECT
from tests.guides.code_blocks import blocks, run_python
from tests.schemas.stand_in_registry import running_stand_in

GUIDE = "docs/guides/schemas.md"


def test_the_code_prints_what_the_guide_says(tmp_path: Path) -> None:
    (code,) = blocks(GUIDE, "python")
    page = (PROJECT / GUIDE).read_text()
    with running_stand_in() as registry:
        printed = run_python(code.replace("http://localhost:8081", registry.url), cwd=tmp_path)
    assert printed
    assert all(f"    {line}\n" in page for line in printed.splitlines())


def test_every_setting_is_in_the_guide() -> None:
    page = (PROJECT / GUIDE).read_text()
    assert not [name for name in {*NAMES, *OTHERS, *WRITING} if f"`{name}`" not in page]
