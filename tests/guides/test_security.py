"""The security guide: its commands do what the page says."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.guides.code_blocks import blocks, run_shell

GUIDE = "docs/guides/security.md"


@pytest.mark.skipif(shutil.which("openssl") is None, reason="the guide uses openssl")
def test_every_command_in_order(tmp_path: Path) -> None:
    making, renewing, rotating, judging = blocks(GUIDE, "sh")
    assert "alice.pem" in run_shell(making, cwd=tmp_path, bootstrap="")
    assert "less than" not in run_shell(renewing, cwd=tmp_path, bootstrap="")
    run_shell(rotating, cwd=tmp_path, bootstrap="")
    assert run_shell(judging, cwd=tmp_path, bootstrap="") == "certs/alice.pem: OK\n"
    check = "openssl verify -CAfile both.pem certs/alice.pem new/alice.pem"
    assert run_shell(check, cwd=tmp_path, bootstrap="").count("OK") == 2
