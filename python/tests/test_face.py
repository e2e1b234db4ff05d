"""The stubs, the command, and what the package says of itself."""

import pathlib
import subprocess
import sys

import farpath
import pytest
from farpath import _farpath

ROOT = pathlib.Path(__file__).parents[2]


def test_the_stubs_are_those_of_the_built_module(tmp_path):
    pytest.importorskip("mypy")
    # The stubs stand alone; what the package imports need not be read for them.
    config = tmp_path / "mypy.ini"
    config.write_text("[mypy]\nfollow_imports = skip\n")
    stubtest = [sys.executable, "-m", "mypy.stubtest", "farpath._farpath", "--ignore-disjoint-bases"]
    stubtest += ["--mypy-config-file", config]
    done = subprocess.run(stubtest, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_types_hold():
    pytest.importorskip("mypy")
    check = [sys.executable, "-m", "mypy", "--config-file", ROOT / "pyproject.toml"]
    done = subprocess.run(check, capture_output=True, text=True)
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
