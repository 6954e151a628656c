"""All of it together, without HTTP: threads that look, judge and tell."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from moldau.client.cluster import Cluster
from moldau.monitor.service import monitor_of
from moldau.monitor.settings import read_settings
from tests.monitor.test_notifying import http_server
from tests.monitor.worlds import ShiftedClock, commit, produce

WAIT_S_MAX = 60.0


def wait(is_so: Callable[[], object]) -> None:
    deadline_s = time.monotonic() + WAIT_S_MAX
    while not is_so():
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


def test_a_group_in_trouble_is_told_of_and_then_that_it_is_over(bootstrap: str, topic: str, group: str) -> None:
    clock = ShiftedClock()
    produce(bootstrap, topic, {0: [clock.now_ms()] * 3})
    commit(bootstrap, group, topic, {0: 1})
    with http_server([]) as (url, asked):
        settings = read_settings(
            {
                "interval": 0.1,
                "clusters": {"local": {"bootstrap-server": bootstrap, "group-allowlist": f"^{group}$"}},
                "notifiers": {"pager": {"url-open": url, "send-once": True}},
            }
        )
        openers = {"local": lambda: Cluster(bootstrap, client_id="test", timeout_s=10.0)}
        monitor = monitor_of(settings, openers, clock)
        assert not monitor.is_ready
        monitor.start()
        try:
            wait(lambda: monitor.is_ready and asked)
            assert monitor.sick() == []
            commit(bootstrap, group, topic, {0: 3})
            wait(lambda: len(asked) == 2)
        finally:
            monitor.stop()
    opened, closed = (json.loads(body) for _, _, body in asked)
    assert [each["event"] for each in (opened, closed)] == ["open", "close"]
    assert opened["id"] == closed["id"]
    assert (opened["result"]["status"], closed["result"]["status"]) == ("ERR", "OK")
    assert [each.split()[0] for each in monitor.sick()] == ["thread", "thread"], "they ended"
