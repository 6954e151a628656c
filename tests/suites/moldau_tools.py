"""Our own tools in the place of Apache Kafka's classes, and what both say where they fail."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from types import MappingProxyType
from typing import Any

from moldau.cli.main import main
from moldau.core.errors import ErrorCode
from tests.suites import tools
from tests.suites.tools import Host

OURS: Mapping[str, str] = MappingProxyType(
    {
        tools.REASSIGNMENT: "reassign-partitions",
        tools.ELECTION: "leader-election",
        tools.LOG_DIRS: "log-dirs",
        tools.API_VERSIONS: "broker-api-versions",
        tools.CLUSTER: "cluster",
        tools.FEATURES: "features",
        tools.QUORUM: "metadata-quorum",
        tools.TRANSACTIONS: "transactions",
        tools.TOKENS: "delegation-tokens",
        tools.ACLS: "acls",
        tools.CONFIGS: "configs",
    }
)
# After a failure Apache Kafka's tools print a stack trace with its causes; what ours say there stands in its place.
TRACE = re.compile(
    r"(Caused by|Suppressed): |org\.apache\.kafka\.tools\.\w+Exception: |\d+ replica\(s\) could not be elected"
    r"|unknown --election-type"
)
NAMES = re.compile(r"^(Error: )?(java\.util\.concurrent\.ExecutionException: )?(org\.apache\.kafka\.[\w.]+: )?")
# Said in other words by us.
TOKENS_REFUSED = (
    "Delegation Token requests are not allowed on PLAINTEXT/1-way SSL channels and on delegation token authenticated"
    " channels."
)
ADVICE = ". Enable debug logging for additional detail."  # there is none in ours
OWN_NAME = re.compile(r"^moldau [\w-]+: ")


class OurTools:
    """A host that runs our tools, and Apache Kafka's where it has a host for them and we have none of our own."""

    def __init__(self, others: Host | None = None) -> None:
        self._others = others

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        name = OURS.get(request["class"])
        if name is None:
            assert self._others is not None, request
            return self._others.ask(request)
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            exit_code = main([name, *request["args"]])
        return {"exit": exit_code, "out": out.getvalue(), "err": OWN_NAME.sub("", err.getvalue())}


def plainly(lines: Iterable[str]) -> list[str]:
    """What is said, without how: traces, names of exceptions and of our tools, and which failure it is."""
    found: list[str] = []
    for line in lines:
        text = "exit" if re.fullmatch(r"exit \d", line) else OWN_NAME.sub("", NAMES.sub("", line))
        text = text.replace(TOKENS_REFUSED, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.message).removesuffix(ADVICE)
        if not TRACE.match(OWN_NAME.sub("", line)) and text not in found[-1:]:
            found.append(text)
    return found
