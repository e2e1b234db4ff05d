"""Sweeps that outgrow one sitting, or one machine."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _farpath
from .experiment import Experiment
from .results import _frame

if TYPE_CHECKING:
    import distributed
    import polars

Progress = Callable[[int, int], object]

# Of 3 ms a run: a second of a worker, and some 100 kB for the scheduler to pass on.
TASK = 300


class Sweep:
    """A finished sweep: `points`, `flows`, and its `folder`."""

    def __init__(self, inner: _farpath.Sweep, folder: Path) -> None:
        self._inner = inner
        self.folder = folder

    @property
    def points(self) -> polars.DataFrame:
        """A row for each point and engine: the swept values, and mean, `_ci95` and `_sd` of each statistic."""
        import polars

        return polars.read_parquet(self.folder / "points.parquet")

    @property
    def flows(self) -> polars.DataFrame:
        """A row for each flow of each run."""
        return _frame(self._inner.flows())

    def __repr__(self) -> str:
        done, wanted = self._inner.status()
        return f"<Sweep in {str(self.folder)!r}: {done} of {wanted} runs>"


def sweep(
    experiment: Experiment | str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    engines: tuple[str, ...] = ("simulate",),
    until: str | None = None,
    of: str = "transfer_time_s",
    most: int = 1000,
    chunk: int | None = None,
    client: distributed.Client | None = None,
    progress: Progress | None = None,
) -> Sweep:
    """Runs what is missing of a sweep, and keeps it in the folder `out` by what made it, as `farpath sweep` does.

    `until="5 %"` adds seeds until half of the 95 % interval of `of` is no wider than this share of its mean, or until there
    are `most`. With a Dask `client` its workers make the runs, `chunk` of them in a task, and this process keeps them.
    `progress` is called with how many runs are there, and of how many.
    """
    if not isinstance(experiment, Experiment):
        experiment = Experiment(experiment)
    inner = _farpath.Sweep(experiment._inner, os.fspath(out), list(engines))
    while True:
        if client is None:
            inner.run(chunk or 4096, progress)
        else:
            _on_cluster(inner, experiment, client, chunk or TASK, progress)
        if until is None or not inner.more_seeds(until, of, most):
            break
    inner.write_points()
    # A cell of a notebook is run again while what it gave the last time is still there.
    inner.release()
    return Sweep(inner, Path(out))


def _on_cluster(
    inner: _farpath.Sweep, experiment: Experiment, client: Any, runs: int, progress: Progress | None
) -> None:
    from distributed import as_completed

    done, wanted = inner.status()
    told = json.dumps([experiment.text, experiment._inner.origin, experiment._inner.changes])
    tasks = [
        client.submit(_task, told, spans, _farpath.PROGRAM, pure=False, retries=3, key=f"farpath-{id(inner)}-{number}")
        for number, spans in enumerate(inner.missing(runs))
    ]
    try:
        for future, made in as_completed(tasks, with_results=True):
            name, chunk, count = made
            inner.keep(name, chunk, count)
            done += count
            future.release()
            if progress is not None:
                progress(done, wanted)
    finally:
        client.cancel([task for task in tasks if not task.done()])


_known: dict[str, _farpath.Experiment] = {}


def _task(told: str, spans: list[tuple[int, str, str, int, int]], asked_by: str) -> tuple[str, bytes, int]:
    """What a worker does: it makes a chunk, and writes nothing."""
    if told not in _known:
        text, origin, changes = json.loads(told)
        _known.clear()
        _known[told] = _farpath.Experiment.parse(text, origin, changes)
    return _farpath.run_chunk(_known[told], spans, asked_by)
