"""Ctrl-C, and how long an import takes."""

import signal
import subprocess
import sys
import threading

import pytest

FOREVER = """
import farpath, time
experiment = farpath.Experiment(delay="5 ms", rate="10 Gbit/s", size="500 GB")
print("ready", flush=True)
try:
    {long}
except KeyboardInterrupt:
    print("interrupted", time.monotonic(), flush=True)
    import os; os._exit(0)
"""


@pytest.mark.parametrize("long", ["experiment.simulate()", "farpath.radius(loss=['1 %', '10 %', '30 %'], check=True)"])
def test_ctrl_c_is_raised_while_something_long_goes_on(long):
    import time

    child = subprocess.Popen([sys.executable, "-c", FOREVER.format(long=long)], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    time.sleep(0.5)
    sent = time.monotonic()
    child.send_signal(signal.SIGINT)
    word, at = child.stdout.readline().split()
    assert word == "interrupted"
    assert child.wait() == 0
    print(f"Ctrl-C after {float(at) - sent:.3f} s")


def test_other_threads_run_meanwhile():
    import farpath

    turns = 0
    over = threading.Event()

    def count():
        nonlocal turns
        while not over.is_set():
            turns += 1
            over.wait(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    farpath.simulate(delay="10 ms", rate="100 Mbit/s", size="20 MB", loss="1 %", seeds=4)
    seen = turns
    over.set()
    thread.join()
    assert seen > 1, "the interpreter's lock is not held"


def test_an_import_brings_no_frames_and_no_plots():
    code = "import farpath, sys; print([name for name in ('polars', 'altair', 'distributed', 'pyarrow', 'pandas') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout == "[]\n"
