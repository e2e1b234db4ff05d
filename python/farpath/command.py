"""What there is to ask without an experiment: how far TCP reaches, and what papers say."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from . import _farpath


# The first process of a machine in virtual time is this command, and so is the one that emulates without root. As a program it is
# an interpreter with this package, of which no variable of the environment tells there.
_farpath.start_program_by(
    [sys.executable, "-I"],
    "import sys\n"
    f"sys.path.insert(0, {str(Path(__file__).absolute().parent.parent)!r})\n"
    "from farpath import _farpath\n"
    "sys.exit(_farpath.main(['farpath', *sys.argv[1:]]))\n"
)


Progress = Callable[[int, int], object]


def radius(
    *stacks: str,
    to: str | None = None,
    via: str | None = None,
    rate: str | None = None,
    loss: str | Sequence[str] = (),
    gap: str | None = None,
    check: bool = False,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """How far TCP reaches: each timer of the stacks as round trip, distance and the last body inside.

    It is what `farpath radius --json` prints; with `gap`, a round trip, the longest time without contact that each stack survives. `progress` is called with how many radii under loss, or by simulation, are found,
    and of how many.
    """
    losses = [loss] if isinstance(loss, str) else list(loss)
    lines = _farpath.radius(list(stacks), to, via, rate, losses, gap, check, progress)
    return [json.loads(line) for line in lines]


VERDICTS: dict[str, str] = dict(_farpath.VERDICTS)
"""What a check of `papers` can come to, and what that means."""


def papers(
    *ids: str, emulate: bool = False, progress: Progress | None = None
) -> list[dict[str, Any]]:
    """The claims of papers, published beside reproduced, check by check, as `farpath reproduce --json` has them.

    The `verdict` of each is a key of `farpath.VERDICTS`.

    With `emulate` the running kernel is asked too, which takes minutes of real time. `progress` is called with how many
    checks are made, and of how many.
    """
    return [json.loads(line) for line in _farpath.papers(list(ids), emulate, progress)]
