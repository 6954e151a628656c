"""The guide of quotas: its commands do what the page says."""

from __future__ import annotations

from pathlib import Path

import moldau
from tests.guides.code_blocks import blocks, run_shell

SAID = """\
set user=alice consumer_byte_rate=2MiB producer_byte_rate=1MiB
set client-id= producer_byte_rate=10000000
ENTITY      QUOTAS
client-id=  producer_byte_rate=10000000
user=alice  consumer_byte_rate=2MiB producer_byte_rate=1MiB
deleted user=alice producer_byte_rate
"""


def test_every_command_in_order(tmp_path: Path) -> None:
    """On a broker of its own: what it sets is for every client."""
    (commands,) = blocks("docs/guides/quotas.md", "sh")
    with moldau.run() as broker:
        assert run_shell(commands, cwd=tmp_path, bootstrap=broker.bootstrap_servers) == SAID
