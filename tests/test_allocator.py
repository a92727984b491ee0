"""The allocator keeps freed memory where glibc serves it."""

import platform
import subprocess
import sys

import pytest

FAULTS = """
import resource, sys
import numpy as np
from refinerank_core.allocator import keep_freed_memory
if sys.argv[1] == "keep":
    assert keep_freed_memory()
def use():
    np.ones(5 << 20, np.float64)
use()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    use()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how: str) -> int:
    """Pages that a fresh process has to be given anew while it asks for one size 20 times."""
    told = subprocess.run(
        [sys.executable, "-c", FAULTS, how], capture_output=True, text=True, check=True
    )
    return int(told.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is not glibc")
def test_memory_that_was_freed_serves_again() -> None:
    assert faults("keep") < 100 < faults("leave")
