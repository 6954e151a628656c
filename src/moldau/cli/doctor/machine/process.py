"""What processes may have and are made of: open files, the clock, the CPU's governor, Python itself."""

from __future__ import annotations

from collections.abc import Iterator

from moldau.cli.doctor.findings import Finding, Severity, ok
from moldau.cli.doctor.machine.facts import Descriptors, LocalBroker, MachineFacts

DESCRIPTORS_WANTED = 100_000
DESCRIPTORS_MIN = 4_096
USED_SHARE_MAX = 0.8
SLOW_GOVERNORS = frozenset({"powersave", "conservative", "ondemand"})
DESCRIPTORS_WHY = (
    "each connection takes one and each segment in use at least one; Apache Kafka's broker dies without them, ours"
    " opens files again and again and takes fewer connections"
)
DESCRIPTORS_DO = (
    f"LimitNOFILE={DESCRIPTORS_WANTED} in the [Service] part of the broker's unit",
    f"echo '* - nofile {DESCRIPTORS_WANTED}' > /etc/security/limits.d/90-moldau.conf     # for logins",
)
CLOCK_ERROR_MS_MAX = 1_000.0


def check_open_files(facts: MachineFacts) -> Iterator[Finding]:
    if facts.shell is not None:
        yield _limits("open-files", "open files of this shell", facts.shell)
    for broker in facts.brokers:
        subject = f"{broker.kind} broker, process {broker.pid}"
        if broker.limits is not None:
            yield _limits("open-files-broker", subject, broker.limits)
        if broker.open_files is not None:
            yield _used(subject, broker)


def _limits(check: str, subject: str, limits: Descriptors) -> Finding:
    """A broker raises its soft limit to the hard one, so that the hard one counts."""
    seen = f"soft {_limit(limits.soft)}, hard {_limit(limits.hard)}"
    if limits.hard is None or limits.hard >= DESCRIPTORS_WANTED:
        return ok(check, subject, seen)
    severity = Severity.WARNING if limits.hard < DESCRIPTORS_MIN else Severity.NOTE
    return Finding(severity, check, subject, f"{seen}, wanted {DESCRIPTORS_WANTED:,}", DESCRIPTORS_WHY, DESCRIPTORS_DO)


def _limit(value: int | None) -> str:
    return "unlimited" if value is None else f"{value:,}"


def _used(subject: str, broker: LocalBroker) -> Finding:
    assert broker.open_files is not None, "the caller looked"
    sockets = f", {broker.sockets:,} of them sockets" if broker.sockets is not None else ""
    seen = f"{broker.open_files:,} open files{sockets}"
    soft = broker.limits.soft if broker.limits else None
    if soft is None or broker.open_files <= soft * USED_SHARE_MAX:
        return ok("open-files-used", subject, seen)
    return Finding(
        Severity.WARNING, "open-files-used", subject, f"{seen}, of at most {soft:,}", DESCRIPTORS_WHY, DESCRIPTORS_DO
    )


def check_clock(facts: MachineFacts) -> Iterator[Finding]:
    clock = facts.clock
    if clock is None or clock.is_synchronised is None:
        return
    if clock.is_synchronised:
        error = f", at most {clock.max_error_ms:.0f} ms off" if clock.max_error_ms is not None else ""
        seen = f"synchronised, as {clock.told_by} tells{error}"
        if clock.max_error_ms is None or clock.max_error_ms <= CLOCK_ERROR_MS_MAX:
            yield ok("clock", "clock", seen)
            return
    else:
        seen = f"not synchronised, as {clock.told_by} tells"
    yield Finding(
        Severity.WARNING,
        "clock",
        "clock",
        seen,
        "timestamps of records decide about retention, lookups by time and lag; logins by tokens and certificates fail"
        " when clocks differ",
        ("apt-get install chrony && systemctl enable --now chrony", "chronyc tracking"),
    )


def check_governor(facts: MachineFacts) -> Iterator[Finding]:
    if not facts.governors:
        return
    slow = sorted(facts.governors & SLOW_GOVERNORS)
    seen = ", ".join(sorted(facts.governors))
    if not slow:
        yield ok("cpu-governor", "CPU governor", seen)
        return
    yield Finding(
        Severity.NOTE,
        "cpu-governor",
        "CPU governor",
        seen,
        "a core that sleeps between requests is slow for the first of them: latency, more than throughput",
        ("cpupower frequency-set -g performance",),
    )


def check_python(facts: MachineFacts) -> Iterator[Finding]:
    python = facts.python
    if python is None:
        return
    version = ".".join(map(str, python.version))
    if python.is_debug:
        yield Finding(
            Severity.WARNING,
            "python-build",
            "Python",
            f"{version}, a debug build",
            "it runs several times slower",
            ("use a release build of Python for the broker",),
        )
    elif not python.is_optimised:
        yield Finding(
            Severity.NOTE,
            "python-build",
            "Python",
            f"{version}, built without --enable-optimizations",
            "it runs 10 to 30 % slower than a build with them, and a broker is Python",
            ("use the distribution's or python.org's Python, or configure --enable-optimizations --with-lto",),
        )
    else:
        yield ok("python-build", "Python", version)
    if python.uvloop is None:
        yield Finding(
            Severity.WARNING,
            "uvloop",
            "uvloop",
            "not there",
            "asyncio's own event loop costs twice as much for each wake-up",
            ("pip install uvloop",),
        )
    else:
        yield ok("uvloop", "uvloop", python.uvloop)
    if python.has_hardware_crc is False:
        yield Finding(
            Severity.NOTE,
            "crc32c",
            "CRC-32C",
            "computed in software",
            "each batch is checked; this CPU, or this build of crc32c, has no instruction for it",
            ("pip install --force-reinstall crc32c",),
        )
    elif python.has_hardware_crc:
        yield ok("crc32c", "CRC-32C", "computed by the CPU")


def check_refused(facts: MachineFacts) -> Iterator[Finding]:
    for path, why in facts.refused.items():
        yield Finding(
            Severity.NOTE,
            "unreadable",
            path,
            f"can't be read: {why}",
            "what it tells was not looked at; everything else was",
            (f"ls -l {path}", "or run moldau doctor --machine as root"),
        )
