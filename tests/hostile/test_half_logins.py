"""Many who begin a login with a large frame and never end it."""

from __future__ import annotations

import struct
from contextlib import ExitStack
from pathlib import Path

from moldau.wire.messages import SaslAuthenticateRequest, SaslHandshakeRequest
from tests.hostile.attacker import Attacker
from tests.hostile.test_failed_logins import resident_mb
from tests.node.securing.secured import PASSWORDS, running_secured

CROWD = 300
MEMORY_MB_MAX = 64
HALF = struct.pack(">i", 524_288) + bytes(500_000)


def test_half_a_login_of_many_costs_little_memory_and_no_login_of_others(tmp_path: Path) -> None:
    with running_secured(tmp_path) as secured, ExitStack() as held:
        found = secured.broker.addresses["SASL_PLAINTEXT"]
        before_mb = resident_mb(secured.broker.pid)
        for _ in range(CROWD):
            held.enter_context(Attacker((found.host, found.port))).send(HALF)
        with Attacker((found.host, found.port)) as client:
            client.ask(SaslHandshakeRequest("PLAIN"), 1)
            token = f"\0alice\0{PASSWORDS['alice']}".encode()
            assert client.ask(SaslAuthenticateRequest(token), 2).error_code == 0
        assert resident_mb(secured.broker.pid) - before_mb < MEMORY_MB_MAX
        assert "others before a login need the memory of its frame" in secured.broker.output()
