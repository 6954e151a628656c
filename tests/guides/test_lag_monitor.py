"""The guide of the lag monitor: its file is one that the monitor takes."""

from __future__ import annotations

import tomllib

from moldau.monitor.notifying.sending import HttpSender, MailSender
from moldau.monitor.settings import FAMILIES, Settings, read_settings
from tests.guides.code_blocks import blocks


def test_the_file_has_every_key_with_its_usual_value() -> None:
    (text,) = blocks("docs/guides/lag-monitor.md", "toml")
    found = read_settings(tomllib.loads(text))
    usual = Settings()
    assert (found.rules, found.listen, found.interval_s) == (usual.rules, usual.listen, usual.interval_s)
    assert found.metrics == FAMILIES
    assert [type(each.sender) for each in found.notifiers] == [HttpSender, MailSender]
