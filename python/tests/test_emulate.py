"""Emulation from Python: in virtual time, where a kernel for it was built, and without root."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import farpath
import pytest

TRANSFER = {"delay": "0.1 light-seconds", "rate": "10 Mbit/s", "size": "200 kB", "stack": "reno-sack", "window": "60 kB"}


def built() -> bool:
    catalog = subprocess.run([sys.executable, "-m", "farpath", "kernel", "info"], capture_output=True, check=False)
    return catalog.returncode == 0


def test_virtual_time_is_the_commands():
    if not built():
        pytest.skip("[virtual] no kernel is built here; `farpath kernel build` takes some minutes")
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


# A notebook: several threads, none of which may enter a user namespace.
NOTEBOOK = """
import farpath, threading
threading.Thread(target=threading.Event().wait, daemon=True).start()
def privileges():
    return [line for line in open("/proc/self/status") if line.startswith(("Cap", "Uid"))]
before = privileges()
try:
    run = farpath.emulate(delay="1 ms", rate="10 Mbit/s", size="20 kB",
                          set={"emulate.lateness": "1 s", "emulate.processor_wait": "100 %"}, trace=True)[0]
    print(run.outcome, run.transfer_time > 0.02, len(run.series) > 0)
except farpath.EngineError as error:
    print(type(error.__cause__).__name__, error)
assert privileges() == before
"""


@pytest.fixture(scope="module")
def without_root():
    """Runs the interpreter as a user without privileges, behind other commands; gives what it says."""
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
    if user and not shutil.which("setpriv"):
        pytest.skip("[root] emulation without root: this is root, and there is no setpriv to become another user by")
    places = [str(Path(farpath.__file__).parent.parent), *(place for place in sys.path if place.endswith("-packages"))]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(places)}

    def run(*command):
        return subprocess.run([*user, *command], env=environment, capture_output=True, text=True, check=False)

    # By a shell: what setpriv starts itself it finds as root.
    sees = (name for name in (sys.executable, "/usr/bin/python3") if run("sh", "-c", f"{name} -c 'import farpath, polars'").returncode == 0)
    python = next(sees, None)
    if python is None:
        pytest.skip(f"[root] emulation without root: {sys.executable}, or what it imports, is not for other users to see")

    def say(code, *before):
        done = run(*before, python, "-c", code)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return say


def test_a_notebook_without_root_emulates_where_the_command_does(without_root):
    doctor = without_root("import farpath; farpath._farpath.main(['farpath', 'doctor', '--json'])")
    if '"emulates":true' not in doctor:
        pytest.skip(f"[root] emulation without root: this machine does not have it: {doctor}")
    assert without_root(NOTEBOOK) == "completed True True\n"


def test_where_user_namespaces_are_forbidden_the_kernels_refusal_is_the_cause(without_root):
    forbid = 'echo 0 >/proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all --inh-caps=-all "$@"'
    nowhere = ["unshare", "-Ur", "sh", "-c", forbid, "sh"]
    try:
        subprocess.run([*nowhere, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"[root] emulation without user namespaces: here is none in which to forbid others: {error}")
    said = without_root(NOTEBOOK, *nowhere)
    assert said.startswith("OSError cannot enter a user namespace"), said
