"""What the parser of a registry's schemas costs when it is done with them."""

from __future__ import annotations

import subprocess
import sys

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
