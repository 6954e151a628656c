"""The line that says what an answer waits for."""

from __future__ import annotations

import io
import time

from moldau.cli.sql.waiting import ERASE, WaitingLine


def test_the_line_counts_and_goes_with_the_first_row() -> None:
    screen = io.StringIO()
    line = WaitingLine(screen)
    line.says("Spark starts")
    deadline = time.monotonic() + 30
    while "Spark starts … 1 s" not in screen.getvalue():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    rows = line.until_first(iter([1, 2]))
    assert not screen.getvalue().endswith(ERASE)
    assert next(rows) == 1
    shown = screen.getvalue()
    assert shown.startswith(f"{ERASE}Spark starts … 0 s")
    assert shown.endswith(ERASE)
    assert next(rows) == 2
    assert screen.getvalue() == shown


def test_a_script_is_told_nothing() -> None:
    line = WaitingLine(None)
    line.says("Spark starts")
    assert list(line.until_first([1])) == [1]
