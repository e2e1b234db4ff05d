"""What a sweep's points say together: surfaces, bands, sensitivity, and the form of the explicit-rate paper.

All of it takes frames as `Sweep.points` has them, filtered as is wanted; `pip install 'farpath[analysis]'` brings what it
computes with.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from .experiment import Experiment
from .plots import draw
from .quantities import Duration, Rate, Share
from .sweeps import sweep

if TYPE_CHECKING:
    import numpy
    import polars

# R = CR / (1 + delay / a) / (1 + loss / b), a in s: L. G. Roberts, "Major Improvements in TCP Performance over Satellite and
# Radio", MILCOM 2006, fitted there to a test bed of 100 Mbit/s. `farpath reproduce explicit-rate` checks what it says.
PAPER = {"normal": (0.002, 0.007), "explicit rate": (0.060, 0.12)}


def surface(
    points: polars.DataFrame,
    x: str,
    y: str,
    value: str = "transfer_time_s",
    *,
    levels: list[float] | None = None,
    log: bool = False,
) -> Any:
    """A column over two others, in colours and with contours: an Altair chart.

    There is at most one row for each `x` and `y`: filter by engine, and by what else is swept. `log` is for values that go
    over decades. `levels` are the contours [default: six of equal steps].
    """
    import contourpy
    import numpy

    points = points.filter(points[value].is_not_null())
    if points.is_empty():
        raise ValueError(f"no point has a value of `{value}`")
    if points.select(x, y).is_duplicated().any():
        raise ValueError(f"several rows have the same `{x}` and `{y}`: filter by engine and by what else is swept")
    xs, ys = (numpy.unique(points[column].to_numpy()) for column in (x, y))
    if min(len(xs), len(ys)) < 2:
        raise ValueError(f"a surface needs two values of `{x}` and of `{y}` at least")
    grid = numpy.full((len(ys), len(xs)), numpy.nan)
    at = numpy.searchsorted(ys, points[y].to_numpy()), numpy.searchsorted(xs, points[x].to_numpy())
    grid[at] = points[value].to_numpy()
    (x0, x1), (y0, y1) = _edges(xs), _edges(ys)
    cells = [
        {"x": xs[i], "y": ys[j], "x0": x0[i], "x1": x1[i], "y0": y0[j], "y1": y1[j], "value": grid[j, i]}
        for j, i in zip(*numpy.nonzero(~numpy.isnan(grid)), strict=True)
    ]
    if levels is None:
        low, high = numpy.nanmin(grid), numpy.nanmax(grid)
        levels = list((numpy.geomspace if log else numpy.linspace)(low, high, 8)[1:-1])
    # Between the points a logarithm goes straighter over decades.
    scale = numpy.log if log else lambda values: values
    found = contourpy.contour_generator(xs, ys, numpy.ma.masked_invalid(scale(grid)))
    lines = [(level, line) for level in levels for line in found.lines(scale(level))]
    contours = [
        {"x": x, "y": y, "place": place, "line": number, "level": level}
        for number, (level, line) in enumerate(lines)
        for place, (x, y) in enumerate(line)
    ]
    changes = {
        "/encoding/x/axis/title": x,
        "/encoding/y/axis/title": y,
        "/layer/0/encoding/color/title": value,
        "/layer/0/encoding/color/scale/type": "log" if log else "linear",
    }
    return draw("surface", f"{value} over {x} and {y}", changes, {"cells": cells, "contours": contours})


def _edges(values: numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Half way to the neighbours; the first and the last end where they are."""
    import numpy

    between = (values[1:] + values[:-1]) / 2
    return numpy.concatenate([values[:1], between]), numpy.concatenate([between, values[-1:]])


def band(
    points: polars.DataFrame,
    x: str,
    value: str = "transfer_time_s",
    *,
    by: list[str] | None = None,
    log: bool = False,
) -> Any:
    """The mean of a statistic over a swept number, with the band of its 95 % interval: an Altair chart.

    A line for each engine and each combination of the columns `by`.
    """
    names = ["engine", *(by or [])]
    points = points.filter(points[value].is_not_null()).sort(x)
    if points.select(x, *names).is_duplicated().any():
        raise ValueError(f"several rows have the same `{x}` on one line: name what else is swept in `by`, or filter it")
    rows = []
    for row in points.select(x, value, f"{value}_ci95", *names).iter_rows():
        at, mean, half, *line = row
        # Of one run there is no interval, and none reaches below zero on a logarithmic axis.
        low = None if half is None else mean - half if not log else max(mean - half, mean / 1e3)
        high = None if half is None else mean + half
        rows.append({"x": at, "y": mean, "low": low, "high": high, "line": ", ".join(map(str, line))})
    changes = {"/encoding/x/axis/title": x, "/layer/1/encoding/y/axis/title": value}
    if log:
        changes["/layer/1/encoding/y/scale/type"] = "log"
    return draw("band", f"{value} over {x}", changes, {"points": rows})


def sobol(
    experiment: Experiment | str | os.PathLike[str],
    out: str | os.PathLike[str],
    ranges: Mapping[str, str],
    *,
    samples: int = 256,
    of: str = "transfer_time_s",
    log: bool = False,
    seed: int = 1,
    engine: str = "simulate",
    **keywords: Any,
) -> polars.DataFrame:
    """Which parameter matters: Sobol indices, each with half of its 95 % interval, a row for each key.

    `ranges` are those of `[sweep.latin]`: `{"path.delay": "1 ms to 600 ms", "path.loss": "0.01 % to 10 % log"}`. A sweep of
    `samples * (keys + 2)` points (Saltelli's design; `samples` is a power of two) is run in the folder `out`, with the
    experiment's seeds for each; other keywords are those of `sweep`. `first` is the share of the variance of the mean that
    the key makes by itself, `total` the share in which it has a part; what is left to chance at a point counts as noise
    of both. `log` takes the logarithm of the statistic, for one that goes over decades.
    """
    import numpy
    import polars
    from SALib.analyze import sobol as analyze
    from SALib.sample import sobol as sample

    if not isinstance(experiment, Experiment):
        experiment = Experiment(experiment)
    spans = {key: _range(key, text) for key, text in ranges.items()}
    problem = {"num_vars": len(spans), "names": list(spans), "bounds": [[0.0, 1.0]] * len(spans)}
    design = sample.sample(problem, samples, calc_second_order=False, seed=seed)
    points = {key: [span(share) for share in design[:, place]] for place, (key, span) in enumerate(spans.items())}
    lists = ", ".join(f"{json.dumps(key)} = {json.dumps(values)}" for key, values in points.items())
    swept = experiment.with_({"sweep": f"{{ zip = {{ {lists} }} }}"})
    found = sweep(swept, out, engines=(engine,), of=of, **keywords).points.sort("point")[of]
    if found.null_count() > 0:
        raise ValueError(
            f"at {found.null_count()} of {len(found)} points there is no `{of}`, as no transfer completed; narrow the ranges, or "
            "ask for a statistic that there always is, such as goodput_bit_per_s"
        )
    values = found.to_numpy()
    indices = analyze.analyze(problem, numpy.log(values) if log else values, calc_second_order=False, seed=seed)
    columns = {"first": "S1", "first_ci95": "S1_conf", "total": "ST", "total_ci95": "ST_conf"}
    return polars.DataFrame({"key": list(spans), **{name: indices[of] for name, of in columns.items()}})


def _range(key: str, text: str) -> Any:
    """What a share from 0 to 1 of a range is, as files have it."""
    number = r"([-+.\d]+)\s*([^\d\s]*)"
    found = re.fullmatch(rf"\s*{number}\s+to\s+{number}(\s+log)?\s*", text)
    if found is None or found[2] != found[4]:
        raise ValueError(f"{key}: expected a range of one unit such as `1 ms to 600 ms` or `0.01 % to 10 % log`, found `{text}`")
    low, high, unit = float(found[1]), float(found[3]), found[2]
    if found[5] is None:
        return lambda share: f"{low + share * (high - low):.6g} {unit}".strip()
    if low <= 0:
        raise ValueError(f"{key}: expected a range above zero before `log`, found `{text}`")
    return lambda share: f"{math.exp(math.log(low) + share * math.log(high / low)):.6g} {unit}".strip()


@dataclass(frozen=True)
class RateFit:
    """`R = CR / (1 + delay / a) / (1 + loss / b)`, the form of the explicit-rate paper, fitted to points.

    `a` is the delay and `b` the loss at which the rate halves; `_ci95` is half of the 95 % interval of each, and `factor` by
    how much a point is typically off (the root mean square of the logarithms, as a factor).
    """

    channel: Rate
    a: Duration
    a_ci95: Duration
    b: Share
    b_ci95: Share
    factor: float
    points: int
    left_out: int
    delay: str

    def rate(self, delay: Duration | float, loss: Share | float) -> Rate:
        """What the form gives at a delay of the same reading."""
        return Rate(self.channel / (1 + delay / self.a) / (1 + loss / self.b))

    def __str__(self) -> str:
        left_out = f", {self.left_out} without goodput left out" if self.left_out else ""
        def percent(share: float) -> str:
            return f"{100 * share:.4g} %"

        lines = [
            f"R = CR / (1 + delay / a) / (1 + loss / b), CR = {self.channel}, {self.delay} delay, {self.points} points{left_out}",
            f"  fitted:        a = {self.a} ± {self.a_ci95}, b = {percent(self.b)} ± {percent(self.b_ci95)}; off by a factor of {self.factor:.2f}",
        ]
        for who, (a, b) in PAPER.items():
            lines.append(f"  {who + ', paper:':<22} a = {Duration(a)}, b = {percent(b)}")
        return "\n".join(lines)


def fit_rate(
    points: polars.DataFrame,
    channel: Rate | str,
    *,
    delay: str = "path.delay_s",
    loss: str = "path.loss",
    value: str = "goodput_bit_per_s",
    reading: Literal["round-trip", "one-way"] = "round-trip",
) -> RateFit:
    """Fits the explicit-rate paper's form to goodputs by the least squares of their logarithms.

    `channel` is CR. The column `delay` is of one way, as experiments have it; the paper calls its delay round-trip, while its
    own figures come out with half of that (`reading="one-way"`). A form of two constants fits a wide sweep roughly at best:
    `factor` says how roughly.
    """
    import numpy
    from scipy.optimize import least_squares
    from scipy.stats import t

    channel = Rate(channel) if isinstance(channel, str) else channel
    known = points.filter(points[value] > 0)
    if len(known) < 3:
        raise ValueError(f"{len(known)} points have a `{value}`; two constants and their intervals need three at least")
    ways = 2.0 if reading == "round-trip" else 1.0
    delays, losses = ways * known[delay].to_numpy(), known[loss].to_numpy()
    rates = numpy.log(known[value].to_numpy() / float(channel))

    def off(constants: numpy.ndarray) -> Any:
        a, b = numpy.exp(constants)
        return -numpy.log1p(delays / a) - numpy.log1p(losses / b) - rates

    start = numpy.log(PAPER["normal"])
    found = least_squares(off, start)
    free = len(rates) - 2
    # Of the logarithms; as a share of the constant for small ones.
    jacobian = numpy.asarray(found.jac)
    if numpy.linalg.matrix_rank(jacobian) < 2:
        raise ValueError("these points do not tell the two constants: expected several delays and several losses, some above zero")
    covariance = numpy.linalg.inv(jacobian.T @ jacobian) * 2 * found.cost / free
    half = t.ppf(0.975, free) * numpy.sqrt(numpy.diag(covariance))
    a, b = numpy.exp(found.x)
    return RateFit(
        channel=channel,
        a=Duration(a),
        a_ci95=Duration(a * half[0]),
        b=Share(b),
        b_ci95=Share(b * half[1]),
        factor=float(numpy.exp(numpy.sqrt(2 * found.cost / len(rates)))),
        points=len(known),
        left_out=len(points) - len(known),
        delay=reading,
    )
