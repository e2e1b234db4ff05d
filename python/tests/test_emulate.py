"""Emulation from Python: in virtual time, where a kernel for it was built."""

import subprocess
import sys

import farpath
import pytest

TRANSFER = {"delay": "0.1 light-seconds", "rate": "10 Mbit/s", "size": "200 kB", "stack": "reno-sack", "window": "60 kB"}


def built() -> bool:
    shelf = subprocess.run([sys.executable, "-m", "farpath", "kernel", "info"], capture_output=True, check=False)
    return shelf.returncode == 0


def test_virtual_time_is_the_commands():
    if not built():
        pytest.skip("SKIPPED virtual time: no kernel was built for it here; `farpath kernel build` takes some minutes")
    transfer = farpath.Experiment(**TRANSFER)
    first, again = (transfer.emulate(clock="virtual")[0] for _ in range(2))
    assert first.outcome == "completed", first
    # Six round trips of 0.2 s and more, which nobody waits for; and the same again, to the nanosecond.
    assert first.transfer_time > 1.2 and first.transfer_time == again.transfer_time


def test_a_kernel_that_was_not_built_is_refused_by_name():
    with pytest.raises(farpath.EngineError, match="atlantis"):
        farpath.emulate(kernel="atlantis", **TRANSFER)


def test_a_clock_that_is_none_is_refused():
    with pytest.raises(farpath.ExperimentError, match="expected one of `real`, `virtual`, found `fast`"):
        farpath.emulate(clock="fast", **TRANSFER)
