"""Sweeps that outgrow one sitting, or one machine."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable
from itertools import islice
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

# The scheduler and this process have some 5 ms to do for a task, a file on the disk included, and do it for one after the
# other. So a task lasts 9 ms for each thread of the cluster at least: docs/sweeps.md, "A thousand cores".
RUNS_PER_THREAD = 3


def task_size(threads: int) -> int:
    """How many runs are in a task for a cluster of so many threads."""
    return max(TASK, RUNS_PER_THREAD * threads)


# Tasks that a scheduler holds at least, and two for each thread: workers that join later find some waiting.
BEGUN = 100

# What a Dask worker must offer to be given emulations: `dask worker --resources KERNEL=1`. They are in real time, so that
# one at a time is what a machine is asked for.
KERNEL = "KERNEL"


class Sweep:
    """A finished sweep: `points`, `flows`, `thresholds`, and its `folder`."""

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

    @property
    def thresholds(self) -> list[dict[str, Any]]:
        """What `find` has found: for each engine and combination of the other axes the two values `between` which the
        statistic crosses, with its mean and interval there, or `None` where it does not."""
        return [json.loads(line) for line in self._inner.thresholds()]

    def __repr__(self) -> str:
        done, wanted = self._inner.status()
        return f"<Sweep in {str(self.folder)!r}: {done} of {wanted} runs>"


def sweep(
    experiment: Experiment | str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    engines: tuple[str, ...] = ("simulate",),
    until: str | None = None,
    find: str | None = None,
    crosses: str | None = None,
    of: str = "transfer_time_s",
    most: int = 1000,
    chunk: int | None = None,
    client: distributed.Client | None = None,
    progress: Progress | None = None,
) -> Sweep:
    """Runs what is missing of a sweep, and keeps it in the folder `out` by what made it, as `farpath sweep` does.

    `until="5 %"` adds seeds until half of the 95 % interval of `of` is no wider than this share of its mean, or until there
    are `most`. `find="path.loss", crosses="60 s"` finds by halving where along this axis `of` crosses the value, and runs no
    other points; see `Sweep.thresholds`. With a Dask `client` its workers make the runs, `chunk` of them in a task, and this
    process keeps them; emulated runs go one by one to workers that offer the resource KERNEL. `progress` is called with how many runs are there, and of how many.
    """
    if not isinstance(experiment, Experiment):
        experiment = Experiment(experiment)
    if (find is None) != (crosses is None):
        raise TypeError("find is a key of the sweep, and crosses the value that is looked for: both are needed")
    search = None if find is None or crosses is None else (find, of, crosses)
    inner = _farpath.Sweep(experiment._inner, os.fspath(out), list(engines), search)
    inner.more_points()
    while True:
        if client is None:
            void = inner.run(chunk or 4096, progress)
        else:
            void = _on_cluster(inner, experiment, client, chunk, progress)
        if not (until is not None and inner.more_seeds(until, of, most)) and not inner.more_points():
            break
    inner.write_points()
    # A cell of a notebook is run again while what it gave the last time is still there.
    inner.release()
    if void > 0:
        text = f"{void} emulated runs were void, as the machine was not in time, and are not kept; the same call asks again"
        warnings.warn(text, stacklevel=2)
    return Sweep(inner, Path(out))


def _on_cluster(
    inner: _farpath.Sweep, experiment: Experiment, client: Any, chunk: int | None, progress: Progress | None
) -> int:
    from distributed import as_completed

    done, wanted = inner.status()
    emulated = inner.missing(1, emulated=True)
    offered = (worker.get("resources") or {} for worker in client.scheduler_info(n_workers=-1)["workers"].values())
    if emulated and not any(KERNEL in resources for resources in offered):
        raise _farpath.SweepError(
            f"no worker of the cluster emulates: start those that may with `dask worker ... --resources {KERNEL}=1`"
        )
    told = json.dumps([experiment.text, experiment._inner.origin, experiment._inner.changes])
    threads = sum(client.nthreads().values())
    others = inner.missing(chunk or task_size(threads), emulated=False)
    asked: dict[str, tuple[Any, _farpath.Missing, dict[str, int] | None]] = {}

    def submit(count: int, missing: _farpath.Missing, resources: dict[str, int] | None) -> list[Any]:
        tasks = [
            client.submit(_task, told, spans, _farpath.PROGRAM, pure=False, retries=3, resources=resources)
            for spans in islice(missing, count)
        ]
        asked.update((task.key, (task, missing, resources)) for task in tasks)
        return tasks

    # One that is done is followed by the next: of a large sweep a scheduler is to hold some tasks, and not all.
    begun = max(BEGUN, 2 * threads)
    tasks = as_completed(submit(begun, others, None) + submit(begun, emulated, {KERNEL: 1}), with_results=True)
    try:
        for future, (name, content, count) in tasks:
            _, missing, resources = asked.pop(future.key)
            tasks.update(submit(1, missing, resources))
            if count > 0:
                inner.keep(name, content, count)
            done += count
            future.release()
            if progress is not None:
                progress(done, wanted)
    finally:
        client.cancel([task for task, *_ in asked.values() if not task.done()])
    return wanted - done


_known: dict[str, _farpath.Experiment] = {}


def _task(told: str, spans: list[tuple[int, str, str, int, int]], asked_by: str) -> tuple[str, bytes, int]:
    """What a worker does: it makes a chunk, and writes nothing."""
    if told not in _known:
        text, origin, changes = json.loads(told)
        _known.clear()
        _known[told] = _farpath.Experiment.parse(text, origin, changes)
    return _farpath.run_chunk(_known[told], spans, asked_by)
