"""What the parser of a registry's schemas costs when it is done with them."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from moldau.registry.checking import LARGE_BYTES, LARGE_WAITING_MAX, Checker, stays
from moldau.web.errors import ApiError

GROWTH_MB_MAX = 64
ASK = """
import asyncio, json, pathlib, time
from moldau.registry.checking import Checker, Source
from moldau.schemas.model import SchemaType

def resident_mb():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4_096 / 1e6

def text(title, fields):
    return json.dumps({"title": title, "properties": {f"field{each}": {"type": "integer"} for each in range(fields)}})

async def main():
    checker = Checker()
    await checker.parse(Source(SchemaType.JSON, text("first", 10)))
    before_mb = resident_mb()
    for each in range(30):
        await checker.parse(Source(SchemaType.JSON, text(f"schema{each}", 3_500)))
    print(resident_mb() - before_mb)
    checker.close()

asyncio.run(main())
"""


def test_schemas_that_were_only_asked_about_leave_no_memory_behind() -> None:
    asked = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, timeout=120, check=True)
    assert float(asked.stdout) < GROWTH_MB_MAX


def test_a_large_schema_holds_up_large_ones_alone() -> None:
    async def check() -> None:
        checker, order = Checker(), []

        async def goes() -> bool:
            return True

        async def ask(size: int, name: str, is_gone: object = stays) -> None:
            async with checker.turn(size, is_gone):  # type: ignore[arg-type]
                order.append(name)

        async with checker.turn(LARGE_BYTES + 1, stays):
            large = [asyncio.create_task(ask(LARGE_BYTES + 1, "large")) for _ in range(LARGE_WAITING_MAX - 1)]
            gone = asyncio.create_task(ask(LARGE_BYTES + 1, "gone", goes))
            await asyncio.sleep(0)  # all of them begin
            await ask(10, "small")
            with pytest.raises(ApiError, match="too many schemas"):
                await ask(LARGE_BYTES + 1, "one too many")
        await asyncio.gather(*large)
        with pytest.raises(ApiError, match="the client is gone"):
            await gone
        assert order == ["small", *["large"] * len(large)]
        checker.close()

    asyncio.run(check())
