"""Sweeps: here and on a Dask cluster."""

import farpath
import polars
import pytest
from farpath import sweeps


def experiment(seeds=20):
    return farpath.Experiment("noisy-channel", seeds=seeds, set={"transfer.size": "100 kB"})


def test_a_sweep_goes_on_where_it_was(tmp_path):
    told = []
    first = farpath.sweep(experiment(5), tmp_path / "out")
    sweep = farpath.sweep(experiment(), tmp_path / "out", progress=lambda done, all: told.append((done, all)))
    assert told[-1] == (100, 100) and all(done >= 25 for done, _ in told)
    assert sweep.points["runs"].to_list() == [20] * 5
    assert first.flows.height == 25, "what it gave before is still there"
    assert sweep.points["path.loss"].to_list() == [0, 0.0001, 0.001, 0.01, 0.1]
    alone = experiment().simulate().flows
    assert sweep.flows["transfer_time_ns"].to_list() == alone["transfer_time_ns"].to_list()


def test_seeds_are_added_until_the_interval_is_narrow(tmp_path):
    sweep = farpath.sweep(experiment(6), tmp_path / "out", until="10 %", most=200)
    points = sweep.points
    wide = points.filter(polars.col("transfer_time_s_ci95") > 0.1 * polars.col("transfer_time_s"))
    assert (wide["runs"] == 200).all()
    assert points["runs"].max() > 6


def test_a_folder_is_not_shared_and_not_overwritten(tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(farpath.SweepError, match="thesis.tex"):
        farpath.sweep(experiment(), tmp_path)
    with pytest.raises(farpath.SweepError, match="farpath measure"):
        farpath.sweep(experiment(), tmp_path / "out", engines=("measure",))
    with pytest.raises(ValueError, match="goodput_bit_per_s"):
        farpath.sweep(experiment(1), tmp_path / "new", until="5 %", of="speed")


def test_a_threshold_is_found_by_halving(tmp_path):
    swept = "{'path.delay' = '10 ms to 1000 ms by 10 ms'}"
    long = experiment(1).with_({"sweep": swept, "path.loss": "0 %"})
    sweep = farpath.sweep(long, tmp_path / "out", engines=("predict", "simulate"), find="path.delay", crosses="10 s")
    assert [one["engine"] for one in sweep.thresholds] == ["predict", "simulate"]
    for one in sweep.thresholds:
        below, above = one["between"]
        assert below["mean"] < 10 <= above["mean"] and above["point"] == below["point"] + 1
    assert len(sweep.points) <= 18
    with pytest.raises(ValueError, match="--find"):
        farpath.sweep(long, tmp_path / "new", find="path.rate", crosses="10 s")


def test_a_cluster_gives_what_this_machine_gives(client, tmp_path, monkeypatch):
    held = []
    # Fewer tasks at once than there are, so that the next ones follow.
    monkeypatch.setattr(sweeps, "BEGUN", 3)
    submit = client.submit
    monkeypatch.setattr(client, "submit", lambda *args, **more: held.append(len(client.futures)) or submit(*args, **more))
    here = farpath.sweep(experiment(), tmp_path / "here")
    there = farpath.sweep(experiment(), tmp_path / "there", client=client, chunk=7)
    assert there.points.equals(here.points)
    # A task that was given up may be listed a moment longer.
    assert len(held) == 15 and max(held) < 8, held


def test_a_cluster_that_may_not_emulate_says_what_it_needs(client, tmp_path):
    with pytest.raises(farpath.SweepError, match="--resources KERNEL=1"):
        farpath.sweep(experiment(1), tmp_path / "out", engines=("emulate",), client=client)


def test_a_worker_of_another_version_is_refused_by_name(client, tmp_path, monkeypatch):
    from farpath import _farpath

    monkeypatch.setattr(_farpath, "PROGRAM", "0.0.1+000000000000")
    with pytest.raises(farpath.SweepError, match=r"a worker runs farpath .* asked for by 0\.0\.1\+0"):
        farpath.sweep(experiment(2), tmp_path / "out", client=client)


def test_the_command_asks_a_cluster(client, tmp_path):
    import subprocess
    import sys

    def ask(address):
        command = [sys.executable, "-m", "farpath", "sweep", "noisy-channel", "--seeds=2", "--set=transfer.size=100 kB"]
        return subprocess.run(
            [*command, "--out", tmp_path / "out", "--cluster", address], capture_output=True, text=True
        )

    done = ask(client.scheduler.address)
    assert done.returncode == 0, done.stderr
    assert polars.read_parquet(done.stdout.strip())["runs"].to_list() == [2] * 5
    refused = ask("tcp://127.0.0.1:9")
    assert refused.returncode == 2 and "tcp://127.0.0.1:9" in refused.stderr, refused.stderr


def test_a_worker_that_dies_loses_nothing(client, tmp_path):
    calls = []

    def kill_one(done, all):
        calls.append(done)
        if len(calls) == 1:
            import os
            import signal

            os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)

    sweep = farpath.sweep(experiment(60), tmp_path / "out", client=client, chunk=5, progress=kill_one)
    assert sweep.points["runs"].to_list() == [60] * 5
    assert calls[-1] == 300
    assert sweep.flows["transfer_time_ns"].to_list() == experiment(60).simulate().flows["transfer_time_ns"].to_list()
