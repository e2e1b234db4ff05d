"""The arithmetic of docs/sweeps.md, "A thousand cores": a scheduler and a keeper of files that are simulated."""

import heapq
import math

import farpath
import pytest
from farpath import _farpath
from farpath.sweeps import TASK, task_size

CORES = 1000
RUN_S = 3e-3
# What the scheduler does for a task. Dask's documentation has 200 us for the one within a process; five times that is assumed
# for the distributed one, through which a file comes back.
SCHEDULER_S = 1e-3
# What keeping a chunk costs this process: its bytes at 200 MB/s, and a file on the disk.
DISK_BYTE_PER_S, FILE_S = 200e6, 3e-3
# Of runs of 1 MB at 1 % loss, measured: 52 B each, and 23 kB a file.
BYTES_PER_RUN = 60


def simulated(runs: int, size: int) -> float:
    """Seconds until the last chunk is kept: tasks go to whoever is free by a scheduler that does one thing at a time."""
    tasks, scheduler, keeper = math.ceil(runs / size), 0.0, 0.0
    free = [0.0] * CORES
    done: list[float] = []
    for _ in range(tasks):
        scheduler = max(scheduler, heapq.heappop(free)) + SCHEDULER_S
        heapq.heappush(free, scheduler + size * RUN_S)
        heapq.heappush(done, scheduler + size * RUN_S)
        while len(done) > CORES:
            keeper = max(keeper, heapq.heappop(done)) + FILE_S + size * BYTES_PER_RUN / DISK_BYTE_PER_S
    while done:
        keeper = max(keeper, heapq.heappop(done)) + FILE_S + size * BYTES_PER_RUN / DISK_BYTE_PER_S
    return keeper


def test_a_run_takes_no_more_bytes_than_is_reckoned_with(tmp_path):
    swept = "{'path.delay' = '1 ms to 30 ms by 1 ms'}"
    experiment = farpath.Experiment("noisy-channel", seeds=100, set={"transfer.size": "10 kB", "path.loss": "1 %", "sweep": swept})
    [task] = _farpath.Sweep(experiment._inner, str(tmp_path / "out"), ["simulate"]).missing(3000, emulated=False)
    _, content, runs = _farpath.run_chunk(experiment._inner, task, _farpath.PROGRAM)
    assert runs == 3000 and len(content) < 3000 * BYTES_PER_RUN


def test_a_task_is_as_large_as_one_scheduler_and_one_keeper_of_files_need():
    assert task_size(2) == TASK == 300
    assert task_size(CORES) == 3000


@pytest.mark.parametrize("runs, most", [(10_000_000, 1.35), (1_000_000_000, 1.02)])
def test_a_thousand_cores_are_busy_nearly_all_of_the_time(runs, most):
    alone = runs * RUN_S / CORES
    seconds = simulated(runs, task_size(CORES))
    print(f"{runs} runs: {alone:.0f} s alone, {seconds:.1f} s")
    assert 1 <= seconds / alone < most


def test_small_tasks_would_leave_them_waiting():
    runs = 10_000_000
    assert simulated(runs, TASK) > 3 * runs * RUN_S / CORES
