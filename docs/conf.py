"""The user guide: `make docs`. Every page of this folder, the Python face from its docstrings, the command from its help."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from jupyter_client.manager import KernelManager
from nbclient import NotebookClient

HERE = Path(__file__).parent

project = "Farpath"
extensions = ["myst_nb", "sphinx.ext.autodoc"]
html_theme = "furo"
html_title = "Farpath"
exclude_patterns = ["_build"]

# Links to headings are those of GitHub, which shows the same pages.
myst_heading_anchors = 4

# Notebooks are kept without their outputs, and have them here: an error in one ends the build.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True

# Each kernel listens at sockets in a folder of its own: TCP ports are drawn before they are bound, and two kernels of a parallel build could
# draw the same.
_create_kernel_manager = NotebookClient.create_kernel_manager


def _with_socket_files(client: NotebookClient) -> KernelManager:
    manager = _create_kernel_manager(client)
    client.sockets = tempfile.TemporaryDirectory(prefix="farpath-guide-")
    manager.transport, manager.ip = "ipc", str(Path(client.sockets.name) / "kernel")
    return manager


NotebookClient.create_kernel_manager = _with_socket_files

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
python_use_unqualified_type_names = True


def _command(*arguments: str) -> str:
    environment = os.environ | {"COLUMNS": "100"}
    command = [sys.executable, "-m", "farpath", *arguments, "--help"]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout


def write_help() -> None:
    """Writes the page of the command: the help of each of its subcommands."""
    whole = _command()
    listed = re.search(r"^Commands:\n((?:  .*\n)+)", whole, re.MULTILINE)
    assert listed, "the help lists its commands"
    names = [name for name in re.findall(r"^  (\S+)  ", listed.group(1), re.MULTILINE) if name != "help"]
    pages = [("farpath", whole), *((f"farpath {name}", _command(name)) for name in names)]
    sections = [f"## {title}\n\n```text\n{text.rstrip()}\n```\n" for title, text in pages]
    text = "# The command\n\n" + "\n".join(sections)
    page = HERE / "command.md"
    if not page.exists() or page.read_text(encoding="utf-8") != text:
        page.write_text(text, encoding="utf-8")


write_help()
