"""What the log says of keys that are set while the broker runs and change nothing."""

from __future__ import annotations

import pytest

from moldau.controller.image import ClusterImage
from moldau.controller.settings.config_changes import log_config_changes


def image(**values: dict[str, str]) -> ClusterImage:
    return ClusterImage(broker_configs={name.lstrip("_"): each for name, each in values.items()})


def test_a_key_without_effect_is_named_once_with_the_reason(caplog: pytest.LogCaptureFixture) -> None:
    before, after = image(), image(_0={"num.io.threads": "9", "log.retention.ms": "1"})
    log_config_changes(before, after)
    reason = "one event loop serves the clients, and a small pool of threads the disk"
    line = f"configuration key without effect, set for broker 0: num.io.threads ({reason})"
    assert caplog.messages == [line]
    log_config_changes(after, after)
    log_config_changes(after, image(_0={"num.io.threads": "9", "log.retention.ms": "2"}))
    assert caplog.messages == [line]
    log_config_changes(after, image(_0={}, _={"num.io.threads": "10"}))
    assert len(caplog.messages) == 2
    assert "for all brokers" in caplog.messages[1]


def test_the_default_is_worth_no_line(caplog: pytest.LogCaptureFixture) -> None:
    log_config_changes(image(), image(_0={"num.io.threads": "8"}))
    assert caplog.messages == []
