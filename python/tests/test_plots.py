"""Figures: the report's definitions, drawn by Altair."""

import farpath
import pytest

altair = pytest.importorskip("altair")


@pytest.fixture(scope="module")
def run():
    return farpath.simulate("single-drop")[0]


def test_a_run_has_the_figures_of_the_report(run, tmp_path):
    plots = run.plot
    assert {"windows", "time-sequence", "rtt"} <= set(plots.names)
    chart = plots.cwnd()
    assert chart.to_dict()["encoding"]["y"]["field"] == "bytes"
    for ending, head in [("svg", b"<svg"), ("png", b"\x89PNG"), ("pdf", b"%PDF")]:
        file = tmp_path / f"cwnd.{ending}"
        chart.save(file)
        assert file.read_bytes().startswith(head)
    chart.save(tmp_path / "cwnd.html", inline=True)
    html = (tmp_path / "cwnd.html").read_text()
    assert "vega" in html and 'src="http' not in html, "it needs no network"
    svg = tmp_path / "sequence.svg"
    plots.time_sequence().save(svg)
    assert svg.stat().st_size > 5000


def test_a_sweep_has_its_response_times(tmp_path):
    results = farpath.Experiment("noisy-channel", seeds=2, set={"transfer.size": "100 kB"}).run("predict", "simulate")
    results.plot.response_time().save(tmp_path / "sweep.svg")
    assert "predict" in (tmp_path / "sweep.svg").read_text()


def test_a_figure_that_is_not_there_says_which_are(run):
    with pytest.raises(farpath.ResultsError, match="windows"):
        run.plot.chart("heat-map")
    with pytest.raises(KeyError, match="no plot is called 'cwnd'"):
        run.plot.chart("cwnd")
    with pytest.raises(farpath.ResultsError, match="no course"):
        farpath.predict("single-drop")[0].plot
