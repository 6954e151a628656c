"""The file systems of log directories: of what kind, how mounted, and how much room there is."""

from __future__ import annotations

from collections.abc import Iterator

from moldau.cli.doctor.findings import Finding, Severity, ok
from moldau.cli.doctor.machine.facts import Folder, MachineFacts
from moldau.cli.units import size_text

GOOD = frozenset({"ext4", "xfs"})
NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "glusterfs", "ceph", "afs", "virtiofs"})
VOLATILE = frozenset({"tmpfs", "ramfs", "devtmpfs"})
LAYERED = frozenset({"overlay", "aufs", "overlayfs"})
FREE_SHARE_PROBLEM, FREE_SHARE_WARNING = 0.05, 0.15
FREE_INODES_SHARE_MIN = 0.05

Seen = tuple[Severity, str]
KINDS: tuple[tuple[frozenset[str], Severity, str, str], ...] = (
    (
        NETWORK,
        Severity.WARNING,
        "a network file system renames open files, may answer fsync before the data is safe and stops the broker"
        " with the network; replication is what protects data",
        "put log.dirs on a local disk with ext4 or XFS",
    ),
    (
        VOLATILE,
        Severity.WARNING,
        "it is memory: a restart of the machine loses every record, and data takes the memory of processes",
        "put log.dirs on a local disk with ext4 or XFS",
    ),
    (
        LAYERED,
        Severity.WARNING,
        "it is a container's own layer: slower to write, and gone with the container",
        "mount a volume for log.dirs (docker run -v, a persistent volume claim)",
    ),
)


def check_folders(facts: MachineFacts) -> Iterator[Finding]:
    for folder in facts.folders:
        yield _kind(folder)
        yield _options(folder)
        yield _room(folder)
        if folder.inodes:
            yield _inodes(folder)
    for path, why in facts.unusable_folders.items():
        yield Finding(
            Severity.WARNING,
            "log-directory",
            path,
            why,
            "nothing can be said of it, and a broker run by this user could not use it",
            (f"ls -ld {path}",),
        )


def _subject(folder: Folder) -> str:
    return folder.path if folder.exists else f"{folder.path} (not there yet)"


def _kind(folder: Folder) -> Finding:
    kind, subject = folder.file_system, _subject(folder)
    if kind is None:
        return ok("file-system", subject, "of a kind that nobody tells")
    seen = f"{kind} at {folder.mount_point}"
    for kinds, severity, why, do in KINDS:
        if kind in kinds:
            return Finding(severity, "file-system", subject, seen, why, (do,))
    if kind in GOOD:
        return ok("file-system", subject, seen)
    return Finding(
        Severity.NOTE,
        "file-system",
        subject,
        seen,
        "ext4 and XFS are what brokers run on everywhere; of others less is known under load and after a crash",
        ("mkfs.xfs for the disk of log.dirs, at the next rebuild of this broker",),
    )


def _options(folder: Folder) -> Finding:
    subject = _subject(folder)
    if "ro" in folder.options:
        why = "nothing can be written; the kernel does that by itself after errors of the disk"
        do = ("dmesg | tail -50", f"mount -o remount,rw {folder.mount_point}")
        return Finding(Severity.PROBLEM, "mount-options", subject, "read-only", why, do)
    if "noatime" in folder.options:
        return ok("mount-options", subject, "noatime")
    relatime = "relatime" in folder.options
    seen = "relatime" if relatime else "atime"
    do = (
        f"mount -o remount,noatime {folder.mount_point}",
        f"and noatime among the options of {folder.mount_point} in /etc/fstab, to keep it",
    )
    why = "each read of a segment may write its time of access; nothing of a broker needs it"
    if relatime:
        return Finding(Severity.NOTE, "mount-options", subject, seen, f"{why} (with relatime once a day)", do)
    return Finding(Severity.WARNING, "mount-options", subject, seen, why, do)


def _room(folder: Folder) -> Finding:
    share = folder.free_bytes / folder.total_bytes if folder.total_bytes else 1.0
    seen = f"{size_text(folder.free_bytes)} of {size_text(folder.total_bytes)} free ({share:.0%})"
    if share >= FREE_SHARE_WARNING:
        return ok("free-space", _subject(folder), seen)
    severity = Severity.PROBLEM if share < FREE_SHARE_PROBLEM else Severity.WARNING
    return Finding(
        severity,
        "free-space",
        _subject(folder),
        seen,
        "a full disk refuses writes, and takes the log directory offline on Apache Kafka",
        (
            "moldau topics list     # which topics are large",
            "moldau topics alter TOPIC --config retention.ms=…     # or retention.bytes, for the largest",
        ),
    )


def _inodes(folder: Folder) -> Finding:
    share = folder.free_inodes / folder.inodes
    seen = f"{folder.free_inodes:,} of {folder.inodes:,} inodes free"
    if share >= FREE_INODES_SHARE_MIN:
        return ok("free-inodes", _subject(folder), seen)
    return Finding(
        Severity.WARNING,
        "free-inodes",
        _subject(folder),
        seen,
        "each segment is three to five files; without inodes a new one can't be made though there is room",
        ("larger segment.bytes for topics with many small segments", f"df -i {folder.mount_point}"),
    )
