from __future__ import annotations

import logging

import pytest

from moldau.core.repeated_line import RepeatedLine


def test_a_line_is_said_once_and_then_once_a_minute_with_the_count(caplog: pytest.LogCaptureFixture) -> None:
    times_s = iter([100.0, 100.1, 159.9, 160.0, 161.0, 500.0])
    line = RepeatedLine(logging.getLogger("moldau.test"), logging.WARNING, clock_s=lambda: next(times_s))
    for number in range(6):
        line.say(f"try {number} failed")
    assert caplog.messages == [
        "try 0 failed",
        "try 3 failed (2 more like it since the last line)",
        "try 5 failed (1 more like it since the last line)",
    ]
