"""ARCHITECTURE.md and the README name what is there, and leave out nothing that a newcomer would stand before."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
SOURCE = PROJECT / "src" / "moldau"
ARCHITECTURE = (PROJECT / "ARCHITECTURE.md").read_text()

NAMED_PATHS = sorted(set(re.findall(r"`((?:[a-z_]+/)+(?:[a-z_]+\.py)?)`", ARCHITECTURE)))
PAGES = sorted([PROJECT / "README.md", PROJECT / "ARCHITECTURE.md", *(PROJECT / "docs").rglob("*.md")])


@pytest.mark.parametrize("path", NAMED_PATHS)
def test_every_path_on_the_map_exists(path: str) -> None:
    assert (SOURCE / path).exists() or (PROJECT / path).exists()


def test_every_room_is_on_the_map() -> None:
    rooms = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    missing = [room for room in sorted(rooms - {"__init__"}) if f"`{room}`" not in ARCHITECTURE]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(PROJECT).as_posix())
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    text = re.sub(r"`[^`\n]*`", "", page.read_text())  # code may look like a link
    links = re.findall(r"\]\((?!https?:)([^)#]+)", text)
    assert not [link for link in links if not (page.parent / link).exists()]
