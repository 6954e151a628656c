"""A wall clock that jumps, for processes that are started with it."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.clients.toolchains import built, run

SOURCE = Path(__file__).with_suffix(".c")
DAY_S = 86_400


class JumpingClock:
    """The wall clock of all processes that have its `environment`. Their other clocks are the machine's."""

    def __init__(self, directory: Path) -> None:
        self._file = directory / "clock-jump"
        self.jump(0)

    @staticmethod
    def is_available() -> bool:
        return shutil.which("cc") is not None

    @property
    def environment(self) -> dict[str, str]:
        return {"LD_PRELOAD": str(_library()), "CLOCK_JUMP_FILE": str(self._file)}

    def jump(self, seconds: int) -> None:
        """From the machine's time, not from where an earlier jump led."""
        draft = self._file.with_suffix(".draft")
        draft.write_text(f"{seconds}\n")
        draft.replace(self._file)


def _library() -> Path:
    def build(target: Path) -> None:
        run("cc", "-shared", "-fPIC", "-O1", "-o", str(target / "clock_jump.so"), str(SOURCE), "-ldl", directory=target)

    return built("clock-jump", [SOURCE], build) / "clock_jump.so"
