"""A pipeline has one runner, wherever the others are: holders that live, that died, and that were away for a while."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import pytest

from moldau.core.clock import SystemClock
from moldau.spark.pipelines.running.state.locks import AlreadyRunning, Holder, Lock, ask_to_end, born, newest_lock
from moldau.spark.storage import LocalFolder

LEASE_S = 1.0


@pytest.fixture
def folder(tmp_path: Path) -> LocalFolder:
    return LocalFolder(tmp_path / "_moldau")


def lock_of(folder: LocalFolder) -> Lock:
    return Lock(folder, lease_s=LEASE_S)


def put(folder: LocalFolder, holder: Holder, number: int = 1) -> None:
    folder.write(f"lock-{number:08d}", json.dumps(asdict(holder)).encode())


def elsewhere(*, age_s: float = 0.0, token: str = "theirs") -> Holder:
    renewed_ms = SystemClock().now_ms() - int(age_s * 1000)
    return Holder(token=token, host="head", pid=7, machine="another", born="1", renewed_ms=renewed_ms)


def test_a_second_run_of_this_machine_is_refused_by_name(folder: LocalFolder) -> None:
    first = lock_of(folder)
    first.take()
    with pytest.raises(AlreadyRunning, match=rf"process {os.getpid()} on \S+ runs this pipeline already"):
        lock_of(folder).take()
    first.release()
    assert newest_lock(folder) is None
    second = lock_of(folder)
    second.take()
    second.release()


def test_a_holder_of_this_machine_that_was_killed_is_succeeded_at_once(folder: LocalFolder) -> None:
    program = (
        "import sys, pathlib; from moldau.spark.pipelines.running.state.locks import Lock;"
        "from moldau.spark.storage import LocalFolder;"
        "Lock(LocalFolder(pathlib.Path(sys.argv[1]))).take(); print('taken', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(folder.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"taken\n"
        with pytest.raises(AlreadyRunning, match=f"process {process.pid} on "):
            lock_of(folder).take()
        process.send_signal(signal.SIGKILL)
        process.wait()
    taken = lock_of(folder)
    taken.take()
    assert [name for name in folder.names() if name.startswith("lock")] == ["lock-00000002"]
    taken.release()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no list of processes that tells of dead ones")
def test_a_dead_holder_whom_nobody_asked_for_is_dead() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    began = born(process.pid)
    assert began is not None
    process.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert Path(f"/proc/{process.pid}/stat").exists()
    assert born(process.pid) is None
    process.communicate()


def test_a_process_that_has_the_number_of_a_dead_one_is_another(folder: LocalFolder) -> None:
    lock = lock_of(folder)
    lock.take()
    found = newest_lock(folder)
    assert found is not None
    assert found.holder.born == born(os.getpid())
    lock.release()
    put(folder, replace(found.holder, token="older", born="12"))
    successor = lock_of(folder)
    successor.take()
    successor.release()


def test_a_holder_elsewhere_that_renews_is_respected(folder: LocalFolder) -> None:
    put(folder, elsewhere())
    with pytest.raises(AlreadyRunning, match=r"process 7 on head runs this pipeline already .* its lock ends in 1 s"):
        lock_of(folder).take()


def test_a_holder_elsewhere_whose_clock_is_wrong_is_seen_to_live(folder: LocalFolder) -> None:
    over = threading.Event()

    def renew() -> None:
        while not over.wait(0.1):
            put(folder, elsewhere(age_s=60))

    put(folder, elsewhere(age_s=60))
    renewing = threading.Thread(target=renew)
    renewing.start()
    try:
        with pytest.raises(AlreadyRunning, match="process 7 on head runs this pipeline already"):
            lock_of(folder).take()
    finally:
        over.set()
        renewing.join()


def test_a_patient_successor_watches_until_it_knows(folder: LocalFolder) -> None:
    """As a cluster starts one, seconds after the driver died on another machine."""
    put(folder, elsewhere())
    patient = Lock(folder, lease_s=LEASE_S, is_patient=True)
    patient.take()
    patient.release()
    put(folder, elsewhere())
    renewal = threading.Timer(LEASE_S / 2, put, (folder, elsewhere(age_s=-1)))
    renewal.start()
    with pytest.raises(AlreadyRunning, match="process 7 on head runs this pipeline already"):
        Lock(folder, lease_s=50.0, is_patient=True).take()
    renewal.join()


@pytest.mark.parametrize("age_s", [60.0, 3600.0])
def test_a_holder_elsewhere_that_is_silent_is_succeeded(folder: LocalFolder, age_s: float) -> None:
    put(folder, elsewhere(age_s=age_s))
    lock = lock_of(folder)
    lock.take()
    lock.release()


@pytest.mark.parametrize("text", [b"", b"{", b"null"])
def test_a_lock_without_a_note_is_succeeded_when_nothing_becomes_of_it(folder: LocalFolder, text: bytes) -> None:
    """As a power failure leaves it, or a store that shows a file before it is written."""
    folder.write("lock-00000001", text)
    lock = lock_of(folder)
    taking = threading.Thread(target=lock.take, daemon=True)
    taking.start()
    taking.join(30)
    assert not taking.is_alive()
    assert [name for name in folder.names() if name.startswith("lock")] == ["lock-00000002"]
    lock.release()


def test_a_lock_whose_note_comes_late_is_respected(folder: LocalFolder) -> None:
    folder.write("lock-00000001", b"")
    late = threading.Timer(LEASE_S / 2, put, (folder, elsewhere()))
    late.start()
    with pytest.raises(AlreadyRunning, match="process 7 on head runs this pipeline already"):
        lock_of(folder).take()
    late.join()


@dataclass(frozen=True)
class Overtaken(LocalFolder):
    """Somebody else succeeds the holder between a look at the names and one at the file."""

    other: Lock

    def read(self, name: str) -> bytes | None:
        if name == "lock-00000001" and (self.path / name).exists():
            self.other.take()
        return LocalFolder.read(self, name)


def test_of_two_that_succeed_a_dead_holder_one_is_refused(folder: LocalFolder) -> None:
    put(folder, elsewhere(age_s=3_600))
    first = lock_of(folder)
    with pytest.raises(AlreadyRunning, match=rf"process {os.getpid()} on "):
        lock_of(Overtaken(folder.path, first)).take()
    assert folder.names() == ["lock-00000002"]
    first.release()


def test_a_holder_that_was_away_learns_who_took_over(folder: LocalFolder) -> None:
    lock = lock_of(folder)
    lock.take()
    put(folder, elsewhere(), number=2)
    wait_for(lambda: lock.lost_to == "process 7 on head")
    before = folder.read("lock-00000002")
    lock.release()
    assert folder.read("lock-00000002") == before


def test_a_holder_elsewhere_is_asked_to_end_through_the_folder(folder: LocalFolder) -> None:
    lock = lock_of(folder)
    lock.take()
    found = newest_lock(folder)
    assert found is not None
    ask_to_end(folder, replace(found.holder, machine="another", token="of an earlier run"))
    lock.renew()
    assert not lock.is_asked_to_end
    ask_to_end(folder, replace(found.holder, machine="another"))
    wait_for(lambda: lock.is_asked_to_end)
    lock.release()


def wait_for(condition: object) -> None:
    deadline_s = time.monotonic() + 30
    assert callable(condition)
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


@pytest.mark.timeout(60)
def test_a_lock_that_nobody_can_read_is_waited_for_and_succeeded(folder: LocalFolder) -> None:
    """Whoever made it died before it wrote who it is."""
    folder.write("lock-00000003", b"")
    began_s = time.monotonic()
    lock = lock_of(folder)
    lock.take()
    assert time.monotonic() - began_s >= LEASE_S
    found = newest_lock(folder)
    assert (found and found.number, folder.names()) == (4, ["lock-00000004"])
    lock.release()


@pytest.mark.timeout(60)
def test_a_lock_that_is_being_written_is_its_writers(folder: LocalFolder) -> None:
    folder.write("lock-00000001", b"")
    writing = threading.Timer(LEASE_S / 2, lambda: put(folder, elsewhere()))
    writing.start()
    with pytest.raises(AlreadyRunning, match="process 7 on head runs this pipeline already"):
        Lock(folder, lease_s=50.0).take()
    writing.join()


ANOTHER_USER = 65534


@pytest.mark.skipif(os.getuid() != 0, reason="another user's process needs another user")
@pytest.mark.parametrize("hides", [False, True])
def test_a_holder_of_another_user_lives_and_is_asked_to_end(folder: LocalFolder, hides: bool) -> None:
    """Some hosts show nobody another user's processes, and none lets them be ended."""
    lock = lock_of(folder)
    lock.take()
    folder.path.chmod(0o777)
    for outer in folder.path.parents:
        if outer.owner() == "root" and not outer.stat().st_mode & stat.S_IXOTH:  # what pytest has made
            outer.chmod(0o755)
    program = (
        "import os, pathlib, sys; from moldau.spark.pipelines.running.state import locks;"
        "from moldau.spark.storage import LocalFolder;"
        f"os.setuid({ANOTHER_USER}); folder = LocalFolder(pathlib.Path(sys.argv[1]));"
        f"locks.born = (lambda pid: locks.NOT_SEEN) if {hides} else locks.born;"
        "holder = locks.newest_lock(folder).holder; print(holder.is_alive(holder.renewed_ms));"
        "locks.ask_to_end(folder, holder)"
    )
    command = [sys.executable, "-c", program, str(folder.path)]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (told.stdout, told.stderr) == ("True\n", "")
    lock.renew()
    assert lock.is_asked_to_end
    lock.release()
