"""The stubs, the command, and what the package says of itself."""

import pathlib
import subprocess
import sys

import farpath
import pytest
from farpath import _farpath


def test_the_stubs_are_those_of_the_built_module():
    stubtest = [sys.executable, "-m", "mypy.stubtest", "farpath._farpath", "--ignore-disjoint-bases"]
    pytest.importorskip("mypy")
    done = subprocess.run(stubtest, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_types_hold():
    pytest.importorskip("mypy")
    root = pathlib.Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-m", "mypy", "--config-file", root / "pyproject.toml"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_command_is_the_same():
    def ask(*arguments):
        return subprocess.run([sys.executable, "-m", "farpath", *arguments], capture_output=True, text=True)

    assert ask("--version").stdout == f"farpath {farpath.__version__}\n"
    refused = ask("predict", "nowhere.toml")
    assert (refused.returncode, refused.stdout) == (2, "") and "nowhere.toml" in refused.stderr
    assert "noisy-channel" in ask("experiments").stdout


def test_one_program():
    assert _farpath.PROGRAM.startswith(farpath.__version__ + "+")
    assert "windows" in _farpath.PLOTS
