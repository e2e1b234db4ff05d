"""How a sweep scales with the workers of a Dask cluster on this machine: `make bench-dask`.

10 MB at 1 % loss, as in `bench --sweep`: 3000 runs into a new folder on one worker and on two, each a process of one thread,
wall clock. This process and the scheduler need a core too, so that two workers on two cores are not twice as fast.
"""

import tempfile
import time
from pathlib import Path

import farpath
from distributed import Client, LocalCluster

RUNS = 3000


def rate(workers: int) -> float:
    experiment = farpath.Experiment("noisy-channel", seeds=RUNS, set={"path.loss": "1 %"})
    with LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        best = float("inf")
        for _ in range(3):
            with tempfile.TemporaryDirectory() as folder:
                began = time.monotonic()
                farpath.sweep(experiment, Path(folder, "out"), client=client)
                best = min(best, time.monotonic() - began)
    return RUNS / best


if __name__ == "__main__":
    one, two = rate(1), rate(2)
    print(f"sweep on Dask, one worker: {one:.0f} runs/s")
    print(f"sweep on Dask, two workers: {two:.0f} runs/s")
    print(f"sweep on Dask, two workers to one: {two / one:.2f} times")
