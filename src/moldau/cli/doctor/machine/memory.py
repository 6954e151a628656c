"""Memory: swap in use, pages that wait to be written, huge pages, and what a container may have."""

from __future__ import annotations

from collections.abc import Iterator

from moldau.cli.doctor.findings import Finding, Severity, ok
from moldau.cli.doctor.machine.facts import DirtyPages, MachineFacts
from moldau.cli.units import size_text

SWAP_SHARE_MAX = 0.01  # of the memory; a few pages are out on every machine
CGROUP_USED_SHARE_MAX = 0.9
CGROUP_MEMORY_MIN = 256 << 20  # a broker takes tens of megabytes, and the page cache counts, too
CONTROLLED_CPUS_MIN = 1.0


def check_swap(facts: MachineFacts) -> Iterator[Finding]:
    if facts.memory is None:
        return
    used, total = facts.memory.swap_used_bytes, facts.memory.swap_total_bytes
    seen = f"{size_text(used)} of {size_text(total)} in use" if total else "there is none"
    if used <= facts.memory.total_bytes * SWAP_SHARE_MAX:
        yield ok("swap", "swap", seen)
        return
    yield Finding(
        Severity.WARNING,
        "swap",
        "swap",
        seen,
        "memory was short, and what was swapped out is read from the disk when a request needs it",
        ("ps -eo pid,rss,comm --sort=-rss | head", "swapoff -a && swapon -a"),
    )


def check_dirty_pages(facts: MachineFacts) -> Iterator[Finding]:
    dirty = facts.dirty
    if dirty is None or not dirty.dirty:
        return
    severity, why = _dirty_verdict(dirty)
    seen = _dirty_seen(dirty)
    if severity is Severity.OK:
        yield ok("dirty-pages", "unwritten pages", seen)
        return
    do = (
        "moldau doctor --machine --watch 60s",
        "iostat -x 1",
        *(("sysctl -w vm.dirty_background_ratio=5",) if severity is not Severity.PROBLEM else ()),
    )
    yield Finding(severity, "dirty-pages", "unwritten pages", seen, why, do)


def _dirty_verdict(dirty: DirtyPages) -> tuple[Severity, str]:
    """The kernel throttles writers from half-way between its two thresholds on."""
    background, threshold = dirty.background_bytes, dirty.threshold_bytes
    if background is None or threshold is None or dirty.peak_bytes < background:
        return Severity.OK, ""
    if dirty.peak_bytes >= threshold:
        return Severity.PROBLEM, (
            "at the upper threshold every process that writes stands still until the disk has caught up: the disk is"
            " slower than what comes in"
        )
    if dirty.peak_bytes >= (background + threshold) / 2:
        return Severity.WARNING, (
            "half-way to the upper threshold the kernel slows down whoever writes: produce requests take longer"
        )
    return Severity.NOTE, (
        "the kernel writes in the background, as it should under load; what is unwritten is lost with the machine"
        " unless other replicas have it"
    )


def _dirty_seen(dirty: DirtyPages) -> str:
    watched = len(dirty.dirty)
    peak, writeback = size_text(dirty.peak_bytes), size_text(max(dirty.writeback, default=0))
    when = f"peak of {watched} samples" if watched > 1 else "one look"
    limits = ""
    if dirty.background_bytes is not None and dirty.threshold_bytes is not None:
        limits = (
            f"; the kernel begins to write at {size_text(dirty.background_bytes)} and stops writers at"
            f" {size_text(dirty.threshold_bytes)}"
        )
    return f"{peak} dirty, {writeback} being written ({when}){limits}"


def check_huge_pages(facts: MachineFacts) -> Iterator[Finding]:
    chosen = facts.huge_pages
    if chosen is None:
        return
    if chosen != "always":
        yield ok("transparent-huge-pages", "transparent huge pages", chosen)
        return
    file = "/sys/kernel/mm/transparent_hugepage/enabled"
    yield Finding(
        Severity.NOTE,
        "transparent-huge-pages",
        "transparent huge pages",
        "always",
        "the kernel stops processes to put huge pages together, and small processes take more memory",
        (f"echo madvise > {file}", "and transparent_hugepage=madvise on the kernel's command line, to keep it"),
    )


def check_cgroup(facts: MachineFacts) -> Iterator[Finding]:
    if facts.cgroup is None:
        return
    most, used = facts.cgroup.memory_max_bytes, facts.cgroup.memory_used_bytes
    if most is not None:
        yield _cgroup_memory(most, used)
    cpus = facts.cgroup.cpus
    if cpus is not None:
        seen = f"{cpus:g} of the machine's cores"
        yield (
            ok("cgroup-cpu", "limit of cores", seen)
            if cpus >= CONTROLLED_CPUS_MIN
            else Finding(
                Severity.WARNING,
                "cgroup-cpu",
                "limit of cores",
                seen,
                "a broker that has used its share stands still for the rest of each 100 ms: latencies jump",
                ("give the container at least one whole core (cpu.max, --cpus=1, resources.limits.cpu)",),
            )
        )


def _cgroup_memory(most: int, used: int | None) -> Finding:
    seen = f"{size_text(used)} of {size_text(most)} in use" if used is not None else size_text(most)
    do = ("raise memory.max of the container (docker run --memory, resources.limits.memory)",)
    if most < CGROUP_MEMORY_MIN:
        why = "the page cache counts as the container's: readers that are behind have to wait for the disk"
        return Finding(Severity.WARNING, "cgroup-memory", "limit of memory", seen, why, do)
    if used is not None and used > most * CGROUP_USED_SHARE_MAX:
        why = (
            "page cache counts, and is given back; if it is the processes' own memory the kernel kills one soon"
            " (memory.events tells)"
        )
        return Finding(Severity.NOTE, "cgroup-memory", "limit of memory", seen, why, do)
    return ok("cgroup-memory", "limit of memory", seen)
