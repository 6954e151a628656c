"""Our tools as Apache Kafka's are run here: with arguments, and with what they left behind."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass

from moldau.cli.main import main
from tests.suites.tools import Printed


@dataclass(frozen=True, slots=True)
class OwnTools:
    """In this process: a tool starts anew for each of hundreds of commands."""

    bootstrap: str

    def run(self, tool: str, *args: str) -> Printed:
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            exit_code = main([tool, "--bootstrap-server", self.bootstrap, *args])
        return Printed(exit_code, out.getvalue(), err.getvalue())

    def groups(self, *args: str) -> Printed:
        return self.run("consumer-groups", *args)
