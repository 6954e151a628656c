"""Settings of the kernel: the values that are wanted, and why. Whoever adds a row to the table adds a check."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from moldau.cli.doctor.findings import Finding, Severity, ok
from moldau.cli.doctor.machine.facts import MachineFacts

SYSCTL_FILE = "/etc/sysctl.d/90-moldau.conf"
OK, NOTE, WARNING = Severity.OK, Severity.NOTE, Severity.WARNING

Judge = Callable[[int], Severity]


def at_least(least: int, otherwise: Severity = NOTE) -> Judge:
    return lambda value: OK if value >= least else otherwise


def at_most(most: int, *, note_up_to: int, otherwise: Severity = WARNING) -> Judge:
    def judge(value: int) -> Severity:
        if value <= most:
            return OK
        return NOTE if value <= note_up_to else otherwise

    return judge


def between(least: int, most: int) -> Judge:
    return lambda value: OK if least <= value <= most else NOTE


class Setting(NamedTuple):
    key: str
    wanted: str
    value: str
    """What to set it to."""
    judge: Judge
    why: str
    instead: str | None = None
    """Another key that replaces it where it is 0."""


MEMORY = (
    Setting(
        "vm.swappiness",
        "1",
        "1",
        lambda value: {0: NOTE, 1: OK}.get(value, NOTE if value <= 10 else WARNING),
        "a broker whose memory is swapped out answers late, and the page cache is worth more than what swapping frees;"
        " 0 would have the kernel kill processes rather than swap at all",
    ),
    Setting(
        "vm.dirty_background_ratio",
        "at most 5",
        "5",
        at_most(5, note_up_to=100),
        "percent of memory at which the kernel begins to write: early and steadily rather than late and all at once,"
        " and what a power failure can lose stays small",
        "vm.dirty_background_bytes",
    ),
    Setting(
        "vm.dirty_ratio",
        "60 to 80",
        "60",
        between(60, 80),
        "percent of memory at which whoever writes has to wait for the disk: a broker that stops in the middle of a"
        " burst looks dead to its clients. A high ratio needs replicas, for unwritten data is lost with the machine",
        "vm.dirty_bytes",
    ),
    Setting(
        "vm.max_map_count",
        "at least 262,144",
        "262144",
        at_least(262_144),
        "Apache Kafka's brokers map two areas for each segment and fail beyond it; Moldau keeps none mapped",
    ),
    Setting(
        "vm.overcommit_memory",
        "0 or 1",
        "0",
        between(0, 1),
        "with 2 the kernel refuses memory that nobody uses yet, and a broker that forks or maps files fails",
    ),
)
NETWORK = (
    *(
        Setting(
            f"net.core.{way}mem_default",
            "at least 131,072",
            "131072",
            at_least(131_072),
            f"bytes that a socket {what} begins with: with fewer a long or fast line is never full",
        )
        for way, what in (("w", "for sending"), ("r", "for receiving"))
    ),
    *(
        Setting(
            f"net.core.{way}mem_max",
            "at least 2,097,152",
            "2097152",
            at_least(2_097_152),
            f"the most that {key} can ask for; replication between data centres needs it",
        )
        for way, key in (("w", "socket.send.buffer.bytes"), ("r", "socket.receive.buffer.bytes"))
    ),
    Setting(
        "net.ipv4.tcp_window_scaling",
        "1",
        "1",
        at_least(1, WARNING),
        "without it a connection has 64 KiB under way at most, whatever the buffers are",
    ),
    Setting(
        "net.ipv4.tcp_max_syn_backlog",
        "at least 1,024",
        "4096",
        at_least(1_024),
        "clients that connect at once, as they do after a broker restarts, are dropped beyond it and wait a second",
    ),
    Setting(
        "net.core.somaxconn",
        "at least 1,024",
        "4096",
        at_least(1_024),
        "connections that wait to be taken by the broker; more of them are dropped, however long its own backlog is",
    ),
    Setting(
        "net.core.netdev_max_backlog",
        "more than 1,000",
        "5000",
        at_least(1_001),
        "packets that wait for the kernel when they come faster than it takes them; on 10 Gbit/s a burst fills 1,000",
    ),
)
SETTINGS = (*MEMORY, *NETWORK)
# Least, usual and most bytes; the kernel chooses between them for each connection.
BUFFERS = ("net.ipv4.tcp_wmem", "net.ipv4.tcp_rmem")
BUFFER_USUAL, BUFFER_MOST = 65_536, 2_048_000
BUFFERS_WHY = (
    "least, usual and most bytes of a connection's buffer: the usual decides how fast it begins, the most how"
    " fast it gets over a long line"
)
KEYS = (*(key for each in SETTINGS for key in (each.key, each.instead) if key), *BUFFERS)


def check_settings(facts: MachineFacts) -> Iterator[Finding]:
    for setting in SETTINGS:
        value = facts.settings.get(setting.key)
        if value is None:
            yield ok(setting.key, setting.key, "this kernel does not show it here")
        elif value.isdecimal():
            yield _judged(setting, int(value), facts)
        else:
            yield ok(setting.key, setting.key, f"{value}, which is no number")


def _judged(setting: Setting, value: int, facts: MachineFacts) -> Finding:
    instead = facts.settings.get(setting.instead or "", "0")
    if value == 0 and instead not in ("0", ""):
        return ok(setting.key, setting.key, f"0, for {setting.instead} = {instead} is set instead")
    severity = setting.judge(value)
    if severity is OK:
        return ok(setting.key, setting.key, str(value))
    return Finding(
        severity,
        setting.key,
        setting.key,
        f"{value}, wanted {setting.wanted}",
        setting.why,
        set_to(setting.key, setting.value),
    )


def set_to(key: str, value: str) -> tuple[str, ...]:
    """For this start of the machine, and for all that follow."""
    assigned = f"{key}={value}" if " " not in value else f"'{key}={value}'"
    return f"sysctl -w {assigned}", f'echo "{key} = {value}" >> {SYSCTL_FILE}'


def check_tcp_buffers(facts: MachineFacts) -> Iterator[Finding]:
    for key in BUFFERS:
        numbers = [int(each) for each in facts.settings.get(key, "").split() if each.isdecimal()]
        if len(numbers) != 3:
            yield ok(key, key, "this kernel does not show it here")
            continue
        least, usual, most = numbers
        seen = f"{least} {usual} {most}"
        if usual >= BUFFER_USUAL and most >= BUFFER_MOST:
            yield ok(key, key, seen)
            continue
        wanted = f"{least} {max(usual, BUFFER_USUAL)} {max(most, BUFFER_MOST)}"
        yield Finding(NOTE, key, key, f"{seen}, wanted at least {wanted}", BUFFERS_WHY, set_to(key, wanted))
