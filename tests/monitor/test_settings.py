"""The monitor's file."""

from __future__ import annotations

import tomllib

import pytest

from moldau.monitor import settings as settings_module
from moldau.monitor.judging import Rules
from moldau.monitor.notifying.sending import HttpSender, MailSender
from moldau.monitor.rules import Status
from moldau.monitor.settings import FAMILIES, InvalidSettings, Settings, read_settings


def test_nothing_said_is_the_usual() -> None:
    assert read_settings({}) == Settings()
    assert read_settings({}).rules == Rules(intervals=10, minimum_complete=0, allowed_lag=0, expire_group_s=604_800)


def test_the_example_of_the_module_is_right() -> None:
    text = (settings_module.__doc__ or "").partition("\n\n")[2]
    found = read_settings(tomllib.loads(text))
    (cluster,) = found.clusters
    assert (cluster.name, cluster.connection["bootstrap-server"]) == ("orders", "kafka-1:9092")
    assert (cluster.client, cluster.read_commits) == ({"security.protocol": "ssl"}, False)
    assert [cluster.wanted.has(each) for each in ("billing", "console-consumer-1")] == [True, False]
    pager, team = found.notifiers
    assert isinstance(pager.sender, HttpSender)
    assert pager.when.threshold == Status.ERR
    assert isinstance(team.sender, MailSender)
    assert (team.sender.to, team.sender.port, team.when.threshold) == (("team@example",), 25, Status.WARN)
    assert found.metrics == FAMILIES


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("intervall = 5", "unknown key intervall; did you mean interval?"),
        ("interval = 'x'", "interval: expected a number"),
        ("interval = true", "interval: expected a number"),
        ("interval = 0", "interval: expected 0.1 or more, up to 3600"),
        ("history = 5", "history: expected a text"),
        ("rules = 5", "rules: expected a table"),
        ("[rules]\nintervals = 1", "rules.intervals: expected 2 or more, up to 1000"),
        ("[rules]\nminimum-complete = 2", "rules.minimum-complete: expected 0 or more, up to 1"),
        ("metrics = ['burro']", "metrics: unknown family 'burro'; there are burrow, kafka_exporter,"),
        ("clusters = 5", "clusters: expected a table"),
        ("clusters.x = 5", "clusters.x: expected a table"),
        ("[clusters.x]\nservers = 'a'", "unknown key clusters.x.servers; known are bootstrap-server,"),
        ("[clusters.x]\ngroup-allowlist = '('", "clusters.x.group-allowlist: '(' is no regular expression"),
        ("[notifiers.x]", "notifiers.x.url-open is missing"),
        (
            "[notifiers.x]\nurl-open = 'http://x'\nheaders.Authorization = \"Bearer secret\\n\"",
            "notifiers.x.headers.'Authorization': expected a header of HTTP, one line of Latin-1",
        ),
        ("[notifiers.x]\nserver = 'x'\nto = ['a@x', '\"']\nfrom = 'b@x'", "notifiers.x.to: expected addresses of mail"),
        ("[notifiers.x]\nurl-open = 'file:///etc/passwd'", "notifiers.x.url-open: expected http:// or https://"),
        ("[notifiers.x]\nurl-open = 'http://x/$grp'", "notifiers.x.url-open: unknown $grp; there are $event,"),
        ("[notifiers.x]\nurl-open = 'http://x'\nthreshold = 'OK'", "unknown value 'OK'; expected WARN, ERR"),
        ("[notifiers.x]\nserver = 'x'", "notifiers.x.to is missing"),
        ("[notifiers.x]\nserver = 'x'\nto = 'a'", "notifiers.x.from is missing"),
        ("[notifiers.x]\nserver = 'x'\nto = 'a'\nfrom = 'b'\nsubject = '$x'", "notifiers.x.subject: unknown $x"),
    ],
)
def test_what_is_wrong_is_named(text: str, message: str) -> None:
    with pytest.raises(InvalidSettings) as told:
        read_settings(tomllib.loads(text))
    assert message in str(told.value)
