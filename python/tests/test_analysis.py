"""Analysis: synthetic data with a known answer, and small sweeps."""

import farpath
import polars
import pytest

analysis = pytest.importorskip("farpath.analysis")
numpy = pytest.importorskip("numpy")
pytest.importorskip("scipy")


def made_up(a, b, noise=0.0):
    """Goodputs of the paper's form, over one-way delays."""
    draws = numpy.random.default_rng(1)
    rows = []
    for rtt in (0.002, 0.01, 0.04, 0.1, 0.5):
        for loss in (0, 0.002, 0.01, 0.05):
            rate = 1e8 / (1 + rtt / a) / (1 + loss / b) * numpy.exp(noise * draws.standard_normal())
            rows.append({"path.delay_s": rtt / 2, "path.loss": float(loss), "goodput_bit_per_s": rate})
    return polars.DataFrame(rows)


def test_the_paper_s_constants_are_found_again():
    for a, b in analysis.PAPER.values():
        fit = analysis.fit_rate(made_up(a, b), "100 Mbit/s")
        assert (fit.a, fit.b) == (pytest.approx(a), pytest.approx(b))
        assert fit.factor == pytest.approx(1) and fit.points == 20
        assert fit.rate(a, 0) == pytest.approx(5e7)
        # Half the delay, half the constant.
        assert analysis.fit_rate(made_up(a, b), "100 Mbit/s", reading="one-way").a == pytest.approx(a / 2)


def test_intervals_hold_the_truth_where_points_scatter():
    fit = analysis.fit_rate(made_up(0.03, 0.02, noise=0.2), "100 Mbit/s")
    assert abs(fit.a - 0.03) < fit.a_ci95 and abs(fit.b - 0.02) < fit.b_ci95
    # The root mean square of 20 draws of 0.2.
    assert 1.1 < fit.factor < 1.35
    assert "0.7 %" in str(fit) and "60 ms" in str(fit)


def test_points_that_tell_nothing_are_refused():
    points = made_up(0.002, 0.007)
    with pytest.raises(ValueError, match="several delays and several losses"):
        analysis.fit_rate(points.filter(polars.col("path.loss") == 0), "100 Mbit/s")
    with pytest.raises(ValueError, match="three at least"):
        analysis.fit_rate(points.head(2), "100 Mbit/s")


def test_sobol_indices_tell_what_matters(tmp_path):
    pytest.importorskip("SALib")
    # Loss-free in a window of six segments a transfer takes so many round trips: the rate of a link that is never full and the
    # losses that there are none of make no difference, and the delay all of it.
    experiment = farpath.Experiment("noisy-channel", seeds=1, set={"transfer.size": "10 kB", "path.loss": "0 %"})
    ranges = {"path.delay": "50 ms to 500 ms", "sender.rto.max": "60 s to 120 s"}
    indices = analysis.sobol(experiment, tmp_path / "out", ranges, samples=32)
    delay, timer = indices.rows(named=True)
    assert delay["key"] == "path.delay" and delay["first"] == pytest.approx(1, abs=0.1)
    assert timer["total"] == pytest.approx(0, abs=1e-6)
    assert len(farpath.sweep(experiment, tmp_path / "one").points) == 1
    with pytest.raises(ValueError, match="path.delay: expected a range"):
        analysis.sobol(experiment, tmp_path / "new", {"path.delay": "50 ms to 1 s"})


@pytest.fixture(scope="module")
def points(tmp_path_factory):
    swept = "{'path.delay' = '10 ms to 200 ms times 2', 'path.loss' = ['0 %', '1 %', '5 %']}"
    experiment = farpath.Experiment("noisy-channel", seeds=3, set={"transfer.size": "50 kB", "sweep": swept})
    return farpath.sweep(experiment, tmp_path_factory.mktemp("sweep") / "out").points


def test_surfaces_have_contours_and_bands_their_intervals(points, tmp_path):
    pytest.importorskip("altair")
    pytest.importorskip("contourpy")
    chart = analysis.surface(points, "path.delay_s", "path.loss", log=True)
    assert len(chart.to_dict()["datasets"]["cells"]) == len(points) == 15
    assert chart.to_dict()["datasets"]["contours"], "15 points of different times have contours"
    chart.save(tmp_path / "surface.svg")
    assert "path.delay_s" in (tmp_path / "surface.svg").read_text()
    band = analysis.band(points, "path.delay_s", by=["path.loss"])
    rows = band.to_dict()["datasets"]["points"]
    assert len({row["line"] for row in rows}) == 3
    assert all(row["low"] <= row["y"] <= row["high"] for row in rows)
    band.save(tmp_path / "band.svg")
    with pytest.raises(ValueError, match="by"):
        analysis.band(points, "path.delay_s")
    with pytest.raises(ValueError, match="filter by engine"):
        analysis.surface(polars.concat([points, points]), "path.delay_s", "path.loss")


def test_a_contour_of_a_plane_is_where_it_is():
    pytest.importorskip("contourpy")
    grid = [{"x": float(x), "y": float(y), "v": float(x + y)} for x in range(5) for y in range(5)]
    chart = analysis.surface(polars.DataFrame(grid), "x", "y", "v", levels=[3.5])
    contour = chart.to_dict()["datasets"]["contours"]
    assert len(contour) > 2 and all(one["x"] + one["y"] == pytest.approx(3.5) for one in contour)
