"""Draws the figures of the guide anew: `make figures`, or `make figures FIGURES="queues jitter"` for some of them.

Each is what a shipped experiment does with seed 1, simulated, or what `farpath trace make` makes.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

import altair as alt
import polars as pl

import farpath

HERE = Path(__file__).parent
WIDTH, HEIGHT = 640, 200
# What a figure shows of a run: more points than it has pixels are of no use to anyone.
COLUMNS = 400


def runs(experiment: str, label: Callable[[dict[str, str]], str], **changes: object) -> tuple[dict[int, str], farpath.Results]:
    """A run of each point of a shipped experiment, with everything recorded, and what the points are called; a list in
    `changes` is swept over."""
    chosen = farpath.Experiment(experiment, seeds=1, set={
        f"sweep.{key}" if isinstance(value, list) else key: value for key, value in changes.items()
    })
    return {number: label(point) for number, point in enumerate(chosen.points)}, chosen.simulate(trace=True)


def series(results: farpath.Results, metric: str, names: dict[int, str], scale: float) -> pl.DataFrame:
    """What a value was over time, each point of a sweep by its name."""
    rows = results.series.filter(pl.col("metric") == metric).select(
        time=pl.col("time_ns") / 1e9, value=pl.col("value") * scale, which=pl.col("point").replace_strict(names)
    )
    return decimate(rows)


def received(results: farpath.Results, names: dict[int, str]) -> pl.DataFrame:
    """The end of what has come to the receiver, in MB."""
    rows = results.segments.filter((pl.col("event") == "received") & (pl.col("len_bytes") > 0)).select(
        time=pl.col("time_ns") / 1e9,
        value=(pl.col("seq") + pl.col("len_bytes") - pl.col("seq").min()).cum_max().over("point") / 1e6,
        which=pl.col("point").replace_strict(names),
    )
    return decimate(rows)


def decimate(rows: pl.DataFrame) -> pl.DataFrame:
    """The median of each column of pixels."""
    columns = rows.with_columns(column=(pl.col("time") * COLUMNS / pl.col("time").max()).floor())
    return columns.group_by("which", "column", maintain_order=True).agg(
        pl.col("time").first(), pl.col("value").median()
    )


def chart(rows: pl.DataFrame, names: Iterable[str]) -> alt.Chart:
    """A line for each name, in their order; what is along its axes is for the caller to say."""
    color = alt.Color("which:N", title=None, sort=list(names), scale=alt.Scale(scheme="category10"))
    return alt.Chart(rows).encode(color=color).properties(width=WIDTH, height=HEIGHT)


def lines(rows: pl.DataFrame, y: str, names: Iterable[str], scale: str = "linear") -> alt.Chart:
    """A value over time."""
    steps = chart(rows.select("time", "value", "which"), names).mark_line(interpolate="step-after", strokeWidth=1.2)
    return steps.encode(
        x=alt.X("time:Q", title="Time, s", scale=alt.Scale(nice=False)),
        y=alt.Y("value:Q", title=y, scale=alt.Scale(type=scale)),
    )


def progress(experiment: str, label: Callable[[dict[str, str]], str], **changes: object) -> alt.Chart:
    """What has come to the receivers of an experiment's points over time."""
    names, results = runs(experiment, label, **changes)
    return lines(received(results, names), "Received, MB", names.values())


def values() -> alt.Chart:
    key = "sender.congestion.control"
    names, results = runs("handover", lambda point: point[key], **{key: ["cubic", "bbr"], "transfer.size": "400 MB"})
    return lines(series(results, "rtt_sample", names, 1e-6), "Round-trip time, ms", names.values())


def traces() -> alt.VConcatChart:
    models = {"on-off": "10 min", "shadowing": "10 min", "rain": "12 h", "cellular": "1 min", "slots": "10 min"}
    charts = []
    with tempfile.TemporaryDirectory() as folder:
        for model, span in models.items():
            file = Path(folder, f"{model}.csv")
            make = ["trace", "make", model, "--rate", "20 Mbit/s", "--span", span, "--seed", "1", "--out", str(file)]
            subprocess.run([sys.executable, "-m", "farpath", *make], check=True, stderr=subprocess.DEVNULL)
            rows = pl.read_csv(file, comment_prefix="#").select(
                time=pl.col("time_s").cast(pl.Float64), value=pl.col("rate_bit_per_s") / 1e6, which=pl.lit(model)
            )
            rates = lines(decimate(rows), "Mbit/s", [model]).encode(color=alt.value("#4c78a8"))
            charts.append(rates.properties(height=70, title=model))
    return alt.vconcat(*charts)


def contacts() -> alt.Chart:
    return progress("relay-contacts", lambda point: point["path.contacts.contact"] + " in 30")


def orbit() -> alt.Chart:
    key = "path.delay.delay.orbit.minimum_elevation"
    return progress("leo-pass", lambda point: "above " + point[key].replace(" deg", "°"))


def policer() -> alt.Chart:
    words = {"drop": "policer", "wait": "shaper"}
    return progress(
        "policed-uplink",
        lambda point: f"{words[point['path.token-bucket.excess']]}, {point['path.token-bucket.burst']}",
        **{"path.token-bucket.burst": ["15 kB", "1 MB"]},
    )


def jitter() -> alt.Chart:
    order = {"true": "reordered", "false": "in order"}
    names, results = runs(
        "jittery-wifi",
        lambda point: f"{point['path.jitter.distribution']}, {order[point['path.jitter.reorder']]}",
    )
    shares = [share / COLUMNS for share in range(1, COLUMNS)]
    samples = results.series.filter(pl.col("metric") == "rtt_sample")
    rows = pl.concat(
        samples.filter(pl.col("point") == point).select(
            value=pl.concat([pl.col("value").quantile(share) / 1e6 for share in shares])
        ).with_columns(share=pl.Series(shares) * 100, which=pl.lit(name))
        for point, name in names.items()
    )
    return chart(rows, names.values()).mark_line(strokeWidth=1.2).encode(
        x=alt.X("value:Q", title="Round-trip time, ms", scale=alt.Scale(type="log", nice=False)),
        y=alt.Y("share:Q", title="Segments, %"),
        order="share:Q",
    )


def queues() -> alt.Chart:
    names, results = runs(
        "home-link", lambda point: point["path.link.aqm"], **{"path.link.aqm": ["drop-tail", "codel", "pie", "red", "cake"]}
    )
    # By their roots: five milliseconds are to be seen beside half a second.
    rows = series(results, "queueing_delay", names, 1e-6)
    return lines(rows, "Queueing delay, ms", names.values(), "sqrt")


FIGURES = {figure.__name__: figure for figure in (values, traces, contacts, orbit, policer, jitter, queues)}

if __name__ == "__main__":
    wanted = sys.argv[1:] or list(FIGURES)
    for name in wanted:
        if name not in FIGURES:
            sys.exit(f"no figure is called {name}; there are: {', '.join(FIGURES)}")
    for name in wanted:
        FIGURES[name]().configure_view(stroke="#ddd").save(HERE / f"{name}.svg")
        print(f"docs/figures/{name}.svg")
