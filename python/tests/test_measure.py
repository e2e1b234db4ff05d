"""A real network: this host's own, from one process to another."""

import re
import subprocess
import sys

import farpath
import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the TCP that is measured is Linux's")


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    key = tmp_path_factory.mktemp("key") / "farpath.key"
    key.write_text("sixteen bytes or more")
    key.chmod(0o600)
    serve = [sys.executable, "-m", "farpath", "serve", "--bind", "127.0.0.1", "--port", "0", "--key", key]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as far:
        address = re.search(r"127\.0\.0\.1:\d+", far.stdout.readline()).group()
        yield address, key
        far.terminate()


def test_an_experiment_is_measured(host):
    address, key = host
    told = []
    transfer = farpath.Experiment(delay="1 ms", rate="1 Gbit/s", size="100 kB", set={"emulate.seeds": 2}, seeds=2)
    results = transfer.measure(address, key=key, trace=True, progress=lambda done, all: told.append((done, all)))
    assert told[-1] == (2, 2)
    assert [(run.engine, run.outcome) for run in results] == [("measure", "completed")] * 2
    # Each run has a course of its own.
    assert results[1].series.height == results.series.filter(seed=results[1].seed).height > 0
    assert "windows" in results[0].plot.names
    untraced = farpath.measure(transfer, address, key=key, seeds=1, set={"emulate.seeds": 1})[0]
    with pytest.raises(farpath.ResultsError, match="trace=True"):
        untraced.plot


def test_a_path_becomes_an_experiment(host):
    address, key = host
    path = farpath.Experiment.measured(address, size="200 kB", key=key, echoes=20)
    assert "# Bits of IP packets" in path.text
    assert path.predict()[0].outcome == "completed"


def test_who_is_not_let_in_is_told(host, tmp_path):
    address, _ = host
    transfer = farpath.Experiment(delay="1 ms", rate="1 Gbit/s", size="100 kB")
    with pytest.raises(farpath.EngineError, match="key"):
        transfer.measure(address)
    with pytest.raises(farpath.EngineError, match="missing.key") as raised:
        transfer.measure(address, key=tmp_path / "missing.key")
    assert isinstance(raised.value.__cause__, FileNotFoundError)
    with pytest.raises(farpath.EngineError, match="127.0.0.1:1"):
        farpath.Experiment.measured("127.0.0.1:1")
    with pytest.raises(ValueError, match="Experiment.measure"):
        transfer.run("measure")
