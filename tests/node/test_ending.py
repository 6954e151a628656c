"""A process that some thread still works in ends without taking down what that thread computes with."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import atexit, sys, threading
from moldau.node.ending import end
atexit.register(print, "taken down")
if {works}:
    threading.Thread(target=threading.Event().wait, daemon=True).start()
print("said")
sys.exit(end(7))
"""


@pytest.mark.parametrize(("works", "printed"), [(True, "said\n"), (False, "said\ntaken down\n")])
def test_the_end_says_all_and_takes_nothing_from_a_thread_that_works(works: bool, printed: str) -> None:
    command = [sys.executable, "-c", SCRIPT.format(works=works)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (7, printed)
