"""What is refused, by whom, and why."""

import json

import farpath
import pytest


def test_a_wrong_key_names_itself_and_the_nearest():
    with pytest.raises(farpath.ExperimentError, match="did you mean `size`") as raised:
        farpath.Experiment.parse("title = 'x'\npath = 'noisy-channel'\n[transfer]\nsise = '1 MB'", origin="x.toml")
    assert (raised.value.file, raised.value.key) == ("x.toml", "transfer.sise")
    assert isinstance(raised.value, farpath.FarpathError)


def test_a_file_that_is_missing_keeps_its_cause(tmp_path):
    with pytest.raises(farpath.ExperimentError) as raised:
        farpath.Experiment(tmp_path / "nowhere.toml")
    assert isinstance(raised.value.__cause__, FileNotFoundError)


def test_units_are_checked():
    with pytest.raises(farpath.UnitError, match="rate: .*MBps"):
        farpath.Experiment(delay="1 ms", rate="8 MBps", size="1 MB")
    with pytest.raises(farpath.UnitError):
        farpath.Duration("20 MB")
    with pytest.raises(farpath.ExperimentError, match="path.delay"):
        farpath.Experiment("noisy-channel", set={"path.delay": "20 MB"})


def test_keywords_are_whole_and_no_file_beside_them():
    with pytest.raises(TypeError, match="rate, size missing"):
        farpath.Experiment(delay="1 ms")
    with pytest.raises(TypeError, match="delay stands in place of a file"):
        farpath.Experiment("noisy-channel", delay="1 ms")
    with pytest.raises(TypeError, match="dilay"):
        farpath.Experiment("noisy-channel", dilay="1 ms")


def test_an_engine_that_is_none_is_refused():
    with pytest.raises(ValueError, match="`guess`"):
        farpath.Experiment("noisy-channel").run("guess")


def test_quantities_print_with_their_unit():
    assert repr(farpath.Rate(9.31e6)) == "Rate(9.31 Mbit/s)"
    assert farpath.Rate("10 Mbit/s") == 1e7
    assert str(farpath.Duration("1.5 light-seconds")) == "1.5 s"
    assert farpath.Size("64 kB") == 64_000
    assert farpath.Share("1 %") == 0.01


def test_quantities_stand_where_text_does():
    by_text = farpath.Experiment(delay="20 ms", rate="10 Mbit/s", size="1 MB", loss="1 %")
    by_number = farpath.Experiment(
        delay=farpath.Duration(0.02), rate=farpath.Rate(1e7), size=farpath.Size(1e6), loss=farpath.Share(0.01)
    )
    assert by_number.text == by_text.text
    swept = by_text.with_({"sweep.path.loss": [farpath.Share(0.005), "2 %"], "path.delay": farpath.Duration(0.03)})
    assert [point["path.loss"] for point in swept.points] == ["0.5 %", "2 %"]


def test_a_keyword_that_is_none_is_named():
    with pytest.raises(TypeError, match="losss"):
        farpath.simulate(delay="1 ms", rate="1 Mbit/s", size="1 kB", losss="1 %")
    with pytest.raises(TypeError, match="seed"):
        farpath.Experiment("noisy-channel").simulate(seed=3)


def test_a_sweep_of_a_newer_version_is_left_alone(tmp_path):
    experiment = farpath.Experiment("noisy-channel", seeds=1, set={"transfer.size": "10 kB"})
    farpath.sweep(experiment, tmp_path)
    file = tmp_path / "sweep.json"
    asked = json.loads(file.read_text())
    newer = json.dumps(asked | {"format_version": asked["format_version"] + 1})
    file.write_text(newer)
    with pytest.raises(farpath.SweepError, match="format version 2.*later program"):
        farpath.sweep(experiment, tmp_path)
    assert file.read_text() == newer
