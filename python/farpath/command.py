"""What the command answers: `explain`, `radius` and `papers`, as it prints them with `--json`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._farpath import FarpathError

if TYPE_CHECKING:
    from .experiment import Experiment


class CommandError(FarpathError):
    """The command has refused what it was asked."""


def _ask(*arguments: str) -> list[dict[str, Any]]:
    # A process of its own: Ctrl-C ends it at once, and it holds no lock of this one.
    command = [sys.executable, "-m", "farpath", *arguments, "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 1):
        raise CommandError(done.stderr.strip().removeprefix("farpath: "))
    return [json.loads(line) for line in done.stdout.splitlines()]


def explain(experiment: Experiment | str | os.PathLike[str], *, point: int = 0) -> dict[str, Any]:
    """What bounds a transfer, which traps it meets, and what a change gains."""
    from .experiment import Experiment

    if not isinstance(experiment, Experiment):
        experiment = Experiment(experiment)
    inner = experiment._inner
    changes = [argument for change in inner.changes for argument in ("--set", change)]
    # Files that it names are looked for beside it; what ships, or was given as text, names none.
    if Path(inner.origin).is_file() and Path(inner.origin).read_text(encoding="utf-8") == inner.text:
        return _ask("explain", inner.origin, "--point", str(point), *changes)[0]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "experiment.toml")
        file.write_text(inner.text, encoding="utf-8")
        return _ask("explain", str(file), "--point", str(point), *changes)[0]


def radius(
    *stacks: str, to: str | None = None, rate: str | None = None, loss: str | Sequence[str] = (), check: bool = False
) -> list[dict[str, Any]]:
    """How far TCP reaches: each timer of the stacks as round trip, distance and the last body inside."""
    arguments = ["radius", *stacks]
    for name, value in (("--to", to), ("--rate", rate)):
        arguments += [] if value is None else [name, value]
    losses = [loss] if isinstance(loss, str) else list(loss)
    arguments += ["--loss", ",".join(losses)] if losses else []
    return _ask(*arguments, *(["--check"] if check else []))


def papers(*ids: str) -> list[dict[str, Any]]:
    """The claims of papers, published beside reproduced, check by check."""
    return _ask("papers", *ids)
