"""Brokers that run on this machine and that this user may look at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import PurePath

from moldau.cli.doctor.machine.facts import Descriptors, LocalBroker
from moldau.cli.doctor.machine.system_files import SystemFiles

ROOT = 0
BROKERS_MAX = 50
APACHE_CLASS = "kafka.Kafka"


def local_brokers(files: SystemFiles, *, user_id: int) -> Iterator[LocalBroker]:
    found = 0
    for name in files.names("/proc"):
        if not name.isdecimal() or found == BROKERS_MAX:
            continue
        owner = files.owner(f"/proc/{name}")
        if owner is None or user_id not in (owner, ROOT):
            continue
        kind = kind_of((files.text(f"/proc/{name}/cmdline") or "").split("\0"))
        if kind is not None:
            found += 1
            yield _described(files, int(name), kind)


def kind_of(words: Sequence[str]) -> str | None:
    """By the command line: `moldau start`, `python -m moldau start`, or Apache Kafka's class."""
    if APACHE_CLASS in words:
        return "Apache Kafka"
    for word, following in pairwise(words):
        if following == "start" and PurePath(word).name == "moldau":
            return "Moldau"
    return None


def _described(files: SystemFiles, pid: int, kind: str) -> LocalBroker:
    descriptors = files.names(f"/proc/{pid}/fd", quiet=True)
    links = [files.link(f"/proc/{pid}/fd/{each}") for each in descriptors]
    return LocalBroker(
        pid,
        kind,
        _limits(files.text(f"/proc/{pid}/limits") or ""),
        len(descriptors) or None,
        sum(each.startswith("socket:") for each in links) if descriptors else None,
    )


def _limits(text: str) -> Descriptors | None:
    for line in text.splitlines():
        if line.startswith("Max open files"):
            soft, hard = line.removeprefix("Max open files").split()[:2]
            return Descriptors(*(int(each) if each.isdecimal() else None for each in (soft, hard)))
    return None
