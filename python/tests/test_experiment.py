"""Experiments, runs and frames, as a notebook meets them."""

import pathlib
import re

import farpath
import polars
import pytest


def small(**more):
    return farpath.Experiment("noisy-channel", seeds=2, set={"transfer.size": "100 kB"}, **more)


def test_a_file_what_ships_and_keywords_are_experiments(tmp_path):
    shipped = small()
    assert len(shipped.points) == 5 and shipped.points[3] == {"path.loss": "1 %"}
    file = tmp_path / "mine.toml"
    file.write_text(shipped.text)
    assert farpath.Experiment(file).points == shipped.points
    assert farpath.Experiment.parse(shipped.text).title == shipped.title
    geo = farpath.Experiment(delay="300 ms", rate="10 Mbit/s", size="1 MB", loss="0.1 %", seeds=3)
    assert geo.seeds == 3 and "300 ms each way" in geo.title
    assert geo.with_({"path.loss": "2 %"}, seeds=4).seeds == 4


def test_engines_answer_side_by_side():
    results = small().run("predict", "simulate")
    assert len(results) == 15
    assert "predicted" in str(results) and "simulated" in str(results)
    assert results.flows.height == 15
    summary = results.summary
    assert summary.filter(polars.col("engine") == "simulate")["runs"].to_list() == [2] * 5
    assert summary["path.loss"].unique(maintain_order=True).to_list()[-1] == "10 %"
    run = results[0]
    assert (run.engine, run.seed, run.outcome) == ("predict", None, "completed")
    assert isinstance(run.transfer_time, farpath.Duration)
    assert str(results[1].goodput).endswith("bit/s")
    assert run.transfer_time == pytest.approx(float(results[1].transfer_time), rel=0.01), "without loss they agree"


def test_a_seed_gives_the_same_run_as_the_command():
    import json
    import subprocess
    import sys

    command = [sys.executable, "-m", "farpath", "simulate", "single-drop", "--flows", "--json"]
    line = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout.splitlines()[0])
    flow = farpath.simulate("single-drop").flows.row(0, named=True)
    assert flow["transfer_time_ns"] == line["transfer_time_ns"] > 0
    assert flow["data_segments"] == line["data_segments"]


def test_traces_are_recorded_when_asked_for_and_made_when_a_run_is_looked_at():
    results = farpath.simulate("single-drop", set={"output.series": False, "output.segments": False})
    assert results.series.height == 0
    run = results[0]
    assert run.series["metric"].is_in(["cwnd"]).any()
    assert run.segments.height > 0
    traced = farpath.simulate("single-drop", trace=True)
    assert traced.segments.equals(run.segments)


def test_tables_go_to_other_libraries_as_they_are():
    import pandas
    import pyarrow

    table = small().predict().table("flows")
    arrow = pyarrow.table(table)
    assert arrow.num_rows == len(table) == 5
    assert arrow.schema.field("transfer_time_ns").metadata[b"unit"] == b"ns"
    assert isinstance(arrow.to_pandas(), pandas.DataFrame)
    # The same memory each time: nothing is copied on the way.
    address = [pyarrow.table(table)["transfer_time_ns"].chunk(0).buffers()[1].address for _ in range(2)]
    assert address[0] == address[1]


def test_results_are_saved_as_the_command_saves_them(tmp_path):
    results = small().simulate()
    results.save(tmp_path / "out")
    results.report(tmp_path / "report.html")
    assert polars.read_parquet(tmp_path / "out/flows.parquet").height == 10
    assert "<html" in pathlib.Path(tmp_path / "report.html").read_text()[:200].lower()
    with pytest.raises(farpath.ResultsError, match="no results"):
        results.save(tmp_path)


def test_what_bounds_it_how_far_it_reaches_and_what_papers_say():
    told = []
    geo = farpath.Experiment(delay="300 ms", rate="10 Mbit/s", size="50 kB")
    explained = geo.explain(progress=lambda done, all: told.append((done, all)))
    assert explained["bounds"] and told[-1][0] == told[-1][1] > 1
    with pytest.raises(farpath.ExperimentError, match="point"):
        geo.explain(point=7)
    told = []
    reach = farpath.radius("linux-6", loss="10 %", to="moon", progress=lambda done, all: told.append((done, all)))
    assert all(line["stack"] == "linux-6" and line["reaches"] == (line["rtt_s"] is None or line["rtt_s"] > 2.57) for line in reach)
    assert told[-1] == (1, 1)
    with pytest.raises(farpath.CommandError, match="no-such-stack"):
        farpath.radius("no-such-stack")
    with pytest.raises(farpath.CommandError, match="expected a rate"):
        farpath.radius("linux-6", rate="fast")
    with pytest.raises(farpath.CommandError, match="no.toml") as refused:
        farpath.radius("no.toml")
    assert isinstance(refused.value.__cause__, FileNotFoundError)
    gaps = farpath.radius("linux-6", gap="100 ms")
    assert {line["packets"] for line in gaps} == {"held", "lost"} and all(line["longest_gap_s"] > 60 for line in gaps)
    told = []
    checks = farpath.papers("radius", progress=lambda done, all: told.append((done, all)))
    assert told[-1] == (len(checks), len(checks))
    assert {"reproduced", "erratum"} <= {check["verdict"] for check in checks} <= set(farpath.VERDICTS)
    with pytest.raises(ValueError, match="no-such-paper.*ricochet"):
        farpath.papers("no-such-paper")


def test_every_table_that_the_guide_names_is_there():
    guide = (pathlib.Path(__file__).parents[2] / "docs" / "results.md").read_text()
    files = re.findall(r"^\| `(\w+)\.parquet` \|", guide, flags=re.MULTILINE)
    sections = re.findall(r"^## ([a-z]+)$", guide, flags=re.MULTILINE)
    assert set(files) == set(sections) >= {"flows", "air"}
    results = farpath.simulate("ricochet", seeds=1, trace=True)
    for name in [*files, "provenance"]:
        columns = [column for column, _, _ in results.table(name).columns]
        assert columns[:3] == ["point", "engine", "seed"], name
        assert polars.DataFrame(results.table(name)).columns == columns
    for name in files:
        assert getattr(results, name).equals(polars.DataFrame(results.table(name))), name
    assert results.air.height > 0, "there is a radio on its path"
    with pytest.raises(KeyError, match="flows, series, .*air, stations, provenance"):
        results.table("nothing")
