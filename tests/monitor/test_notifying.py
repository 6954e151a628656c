"""When somebody is told, what, and what happens when nobody listens."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from string import Template
from typing import Any

import msgspec
import pytest

from moldau.monitor.history import History
from moldau.monitor.notifying import notifier as notifier_module
from moldau.monitor.notifying.deciding import Event, Incident, When, decided
from moldau.monitor.notifying.messages import BadTemplate, as_text, checked, fields
from moldau.monitor.notifying.notifier import Notifier
from moldau.monitor.notifying.sending import Call, HttpSender, MailSender, NotSent
from moldau.monitor.rules import GroupVerdict, PartitionVerdict, Status
from moldau.monitor.serving.configuration import _notifier
from moldau.monitor.settings import NotifierSettings
from moldau.monitor.watching import Wanted
from tests.monitor.servers import QuietHandler, serving

BILLING = GroupVerdict(
    "local",
    "billing/eu",
    Status.ERR,
    0.5,
    (
        PartitionVerdict("orders", 0, Status.STOP, current_lag=7, complete=1.0, lag_seconds=61.5),
        PartitionVerdict("orders", 1),
    ),
    None,
    7,
)
INCIDENT = Incident("id-1", 1_700_000_000_000, Status.ERR, 0)


def told(statuses: str, when: When, *, step_ms: int = 10_000) -> str:
    """One letter for each look: what was told at it."""
    incident: Incident | None = None
    events = []
    for number, letter in enumerate(statuses):
        status = {"o": Status.OK, "w": Status.WARN, "e": Status.ERR, "-": Status.NOTFOUND}[letter]
        incident, event = decided(incident, status, when, now_ms=number * step_ms, new_id=f"id-{number}")
        events.append({None: ".", Event.OPEN: "O", Event.AGAIN: "A", Event.CLOSE: "C"}[event])
    return "".join(events)


@pytest.mark.parametrize(
    ("statuses", "when", "expected"),
    [
        ("ooo", When(), "..."),
        ("owwo", When(), ".O.C"),
        ("owewo", When(), ".OAAC"),
        ("wwwwwwwwwwwwww", When(every_s=60), "O.....A.....A."),
        ("wwwwwwwww", When(every_s=60, once=True), "O........"),
        ("wweewo", When(threshold=Status.ERR), "..O..C"),
        ("wwo", When(threshold=Status.ERR), "..."),
        ("ee-e", When(), "O.CO"),
        ("eo", When(send_close=False), "O."),
        ("eoe", When(send_close=False), "O.O"),
        ("ewewe", When(once=True), "O...."),
    ],
)
def test_who_is_told_when(statuses: str, when: When, expected: str) -> None:
    assert told(statuses, when) == expected


def test_an_incident_keeps_its_id_until_it_is_over() -> None:
    incident, _ = decided(None, Status.WARN, When(), now_ms=5, new_id="first")
    assert incident == Incident("first", 5, Status.WARN, 5)
    incident, _ = decided(incident, Status.ERR, When(), now_ms=9, new_id="other")
    assert incident == Incident("first", 5, Status.ERR, 9)
    assert decided(incident, Status.OK, When(), now_ms=10, new_id="other") == (None, Event.CLOSE)


def test_a_template_names_only_what_there_is() -> None:
    assert checked("$group is $status in ${app}", {"app": "x"}).template
    with pytest.raises(BadTemplate, match=r"unknown \$grop"):
        checked("$grop", {})
    with pytest.raises(BadTemplate, match=r"written \$\$"):
        checked("5 $", {})


@contextmanager
def http_server(answers: list[int]) -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """Answers with these codes, then with 200, and notes what it was asked."""
    asked: list[tuple[str, str, str]] = []

    class Handler(QuietHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            asked.append((self.command, self.path, body))
            self.send_response(answers.pop(0) if answers else 200)
            self.end_headers()

        do_DELETE = do_POST

    with serving(Handler) as url:
        yield url, asked


def test_an_http_notifier_sends_templates_or_all_of_it() -> None:
    with http_server([]) as (url, asked):
        sender = HttpSender(
            Call(Template(f"{url}/open/$group")),
            Call(
                Template(f"{url}/close/$id"), "DELETE", Template('{"id": "$id", "key": "$key", "parts": $partitions}')
            ),
            extras={"key": "k"},
        )
        known = fields(Event.OPEN, INCIDENT, BILLING)
        sender.send(Event.OPEN, known)
        sender.send(Event.CLOSE, known)
        quoting = msgspec.structs.replace(BILLING, group='the "other"')
        sender.send(Event.CLOSE, {**fields(Event.CLOSE, INCIDENT, quoting), "id": 'a"b'})
    (first, path, body), closing, quoted = asked
    assert json.loads(quoted[2])["id"] == 'a"b'
    assert (first, path) == ("POST", "/open/billing%2Feu")
    content = json.loads(body)
    assert (content["event"], content["id"], content["start"]) == ("open", "id-1", "2023-11-14T22:13:20+00:00")
    assert (content["result"]["group"], content["result"]["status"]) == ("billing/eu", "ERR")
    assert [each["status"] for each in content["result"]["partitions"]] == ["STOP"]
    assert closing[:2] == ("DELETE", "/close/id-1")
    assert json.loads(closing[2])["parts"][0]["lag_seconds"] == 61.5


def test_who_refuses_is_asked_again(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(notifier_module, "PAUSE_S", 0.0)
    with http_server([500, 429]) as (url, asked):
        sender = HttpSender(Call(Template(url)), Call(Template(url)))
        Notifier("pager", sender).send(Event.OPEN, fields(Event.OPEN, INCIDENT, BILLING), threading.Event())
        assert len(asked) == 3
    assert "notifier pager, attempt 2 of 3" in caplog.text
    with pytest.raises(NotSent, match="refused"):
        sender.send(Event.OPEN, fields(Event.OPEN, INCIDENT, BILLING))


def test_mail_is_sent() -> None:
    mails: list[str] = []

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(b"220 here\r\n")
            while line := self.rfile.readline().strip().upper():
                if line == b"DATA":
                    self.wfile.write(b"354 go on\r\n")
                    mails.append(b"".join(iter(self.rfile.readline, b".\r\n")).decode())
                self.wfile.write(b"221 bye\r\n" if line == b"QUIT" else b"250 fine\r\n")
                if line == b"QUIT":
                    return

    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.handle_request, daemon=True)
        thread.start()
        sender = MailSender(
            "127.0.0.1", server.server_address[1], "m@example", ("a@example", "b@example"), Template("$status: $group")
        )
        sender.send(Event.OPEN, fields(Event.OPEN, INCIDENT, BILLING))
        thread.join(10)
    assert "Subject: ERR: billing/eu" in mails[0]
    assert "To: a@example, b@example" in mails[0]
    assert "STOP       orders-0, lag 7" in mails[0]
    with pytest.raises(NotSent, match="mail by 127"):
        sender.send(Event.OPEN, fields(Event.OPEN, INCIDENT, BILLING))


class Silent:
    def send(self, event: Event, known: Any) -> None:
        raise AssertionError("nothing is sent here")


def test_an_incident_is_closed_after_a_restart(tmp_path: Path) -> None:
    history = History(str(tmp_path / "lag.sqlite"))
    first = Notifier("pager", Silent(), keeper=history, new_id=lambda: "id-1")
    first._judge(BILLING, 1_000)
    assert first.waiting.get_nowait()[0] is Event.OPEN
    second = Notifier("pager", Silent(), keeper=history)
    assert second.incidents == {("local", "billing/eu"): Incident("id-1", 1_000, Status.ERR, 1_000)}
    second._judge(GroupVerdict("local", "billing/eu", Status.OK, 1.0, (), None, 0), 2_000)
    event, known = second.waiting.get_nowait()
    assert (event, known["id"], known["status"]) == (Event.CLOSE, "id-1", "OK")
    assert history.incidents("pager") == {}
    history.close()


def test_messages_that_nobody_takes_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    notifier = Notifier("pager", Silent(), When(every_s=1))
    for number in range(notifier_module.WAITING_MAX + 2):
        notifier._judge(BILLING, number * 1_000)
    assert notifier.waiting.qsize() == notifier_module.WAITING_MAX
    assert caplog.text.count("one is left out") == 2


def test_what_is_no_http_is_one_more_reason_not_to_be_sent() -> None:
    """An exception of another kind would end the notifier's thread, and nobody would be told of anything."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.rfile.readline()
            self.wfile.write(b"x" * 1_000 + b"\r\n\r\n")

    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.handle_request, daemon=True)
        thread.start()
        url = Template(f"http://127.0.0.1:{server.server_address[1]}/services/T0/secret")
        with pytest.raises(NotSent) as told:
            HttpSender(Call(url), Call(url)).send(Event.OPEN, fields(Event.OPEN, INCIDENT, BILLING))
        thread.join(10)
    assert len(str(told.value)) < 300


def test_the_log_does_not_tell_the_path_of_a_webhook(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is all that somebody needs to write there."""
    monkeypatch.setattr(notifier_module, "PAUSE_S", 0.0)
    known = fields(Event.OPEN, INCIDENT, BILLING)
    with http_server([403]) as (url, _):
        call = Call(Template(f"{url}/services/T0/secret?token=secret".replace("//", "//user:secret@")))
        Notifier("pager", HttpSender(call, call)).send(Event.OPEN, known, threading.Event())
    Notifier("pager", HttpSender(call, call)).send(Event.OPEN, known, threading.Event())
    assert f"POST {url}: " in caplog.text
    assert "secret" not in caplog.text


def test_a_password_that_mail_cannot_say_is_one_more_reason_not_to_be_sent() -> None:
    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(b"220 here\r\n")
            while self.rfile.readline():
                self.wfile.write(b"250-here\r\n250 AUTH PLAIN\r\n")

    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.handle_request, daemon=True)
        thread.start()
        port = server.server_address[1]
        sender = MailSender("127.0.0.1", port, "m@x", ("a@x",), Template("$group"), username="m", password="größe")
        with pytest.raises(NotSent, match="mail by 127"):
            sender.send(Event.OPEN, fields(Event.OPEN, INCIDENT, BILLING))
        thread.join(10)


def test_a_full_disk_keeps_nobody_from_being_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """An exception would end the thread that looks at the cluster. What is not written is written later."""
    history = History(str(tmp_path / "lag.sqlite"))
    pages = history._file.execute("PRAGMA page_count").fetchone()[0]
    history._file.execute(f"PRAGMA max_page_count = {pages}")
    notifier = Notifier("pager", Silent(), keeper=history)
    for number in range(500):
        notifier._judge(msgspec.structs.replace(BILLING, group=f"{number} {'x' * 100}"), 1_000)
    assert notifier.waiting.qsize() == 500
    assert "incidents of notifier pager can't be written: database or disk is full" in caplog.text
    history._file.execute(f"PRAGMA max_page_count = {pages + 1_000}")
    notifier._judge(BILLING, 1_000)
    assert len(history.incidents("pager")) == 501
    history.close()


def test_the_configuration_over_http_does_not_tell_it_either() -> None:
    call = Call(Template("https://user:secret@hooks.example:8443/services/T0/secret?token=secret"))
    found = _notifier(NotifierSettings("pager", HttpSender(call, call), When(), Wanted()))
    assert found["url-open"] == found["url-close"] == "https://hooks.example:8443"
    assert "secret" not in json.dumps(found)


def test_a_groups_name_makes_up_no_lines_of_a_mail() -> None:
    known = {**fields(Event.OPEN, INCIDENT, BILLING), "group": "a\nlag        0 records\x1b[2J"}
    text = as_text(known)
    assert text.splitlines()[0] == r"group a\nlag        0 records\x1b[2J of cluster local is ERR"
    assert "\x1b" not in text
