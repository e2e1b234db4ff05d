"""What there is to ask without an experiment: how far TCP reaches, and what papers say."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from . import _farpath
from ._farpath import FarpathError


# The first process of a machine in virtual time is this command. As a program it is an interpreter with this package, of which
# no variable of the environment tells there.
_farpath.start_guests_by(
    f"#!{sys.executable} -I\n"
    "import sys\n"
    f"sys.path.insert(0, {str(Path(__file__).absolute().parent.parent)!r})\n"
    "from farpath import _farpath\n"
    "sys.exit(_farpath.main(['farpath', *sys.argv[1:]]))\n"
)


class CommandError(FarpathError):
    """The command has refused what it was asked."""


def radius(
    *stacks: str, to: str | None = None, rate: str | None = None, loss: str | Sequence[str] = (), check: bool = False
) -> list[dict[str, Any]]:
    """How far TCP reaches: each timer of the stacks as round trip, distance and the last body inside.

    It is what `farpath radius --json` prints.
    """
    arguments = ["radius", *stacks, "--json"]
    for name, value in (("--to", to), ("--rate", rate)):
        arguments += [] if value is None else [name, value]
    losses = [loss] if isinstance(loss, str) else list(loss)
    arguments += ["--loss", ",".join(losses)] if losses else []
    arguments += ["--check"] if check else []
    # A process of its own, which Ctrl-C ends: distances, bodies and media are the command's own.
    done = subprocess.run([sys.executable, "-m", "farpath", *arguments], capture_output=True, text=True, check=False)
    # 1 says that a simulation has another radius, which the lines say too.
    if done.returncode not in (0, 1):
        raise CommandError(done.stderr.strip().removeprefix("farpath: "))
    return [json.loads(line) for line in done.stdout.splitlines()]


def papers(
    *ids: str, emulate: bool = False, progress: Callable[[int, int], object] | None = None
) -> list[dict[str, Any]]:
    """The claims of papers, published beside reproduced, check by check, as `farpath papers --json` has them.

    With `emulate` the running kernel is asked too, which takes minutes of real time. `progress` is called with how many
    checks are made, and of how many.
    """
    return [json.loads(line) for line in _farpath.papers(list(ids), emulate, progress)]
