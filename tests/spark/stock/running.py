"""A program that takes jobs as lines of JSON and answers each with a line: how tests and benchmarks talk to a Spark."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

PROJECT = Path(__file__).parents[3]
STOP_S_MAX = 60.0


class JobFailed(Exception):
    """What the program said of a job that it could not do."""


class JobRunner:
    """The other side's methods, by name."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process, self.requests, self.answers = process, process.stdin, process.stdout

    def call(self, job: str, **fields: Any) -> Any:
        self.requests.write(json.dumps({"job": job, "fields": fields}) + "\n")
        self.requests.flush()
        line = self.answers.readline()
        if not line:
            raise JobFailed(f"{job}: the program ended with code {self.process.wait(STOP_S_MAX)}")
        answer = json.loads(line)
        if "failed" in answer:
            raise JobFailed(f"{job}: {answer['failed']}")
        return answer["answer"]


@contextmanager
def running_jobs(
    command: Sequence[str], *, errors: IO[bytes] | int | None = None, environment: Mapping[str, str] | None = None
) -> Iterator[JobRunner]:
    process = subprocess.Popen(
        command,
        cwd=PROJECT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        env={**os.environ, **(environment or {})},
    )
    try:
        yield JobRunner(process)
    finally:
        assert process.stdin is not None
        assert process.stdout is not None
        # An end of its input is the end of its work.
        process.stdin.close()
        try:
            process.wait(STOP_S_MAX)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
