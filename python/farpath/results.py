"""What engines have given back: frames, single runs, figures."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

from . import _farpath
from .quantities import Duration, Rate, Share

if TYPE_CHECKING:
    import polars

    from .plots import Plots


def _frame(table: _farpath.Table) -> polars.DataFrame:
    import polars

    return polars.DataFrame(table)


class Results:
    """Runs of an experiment, in the order of points, engines and seeds.

    `flows`, `series`, `segments`, `messages`, `routers`, `air`, `stations` are polars frames over the engines' own memory; `table(name)` is
    the same for any library that knows Arrow's PyCapsule interface: `pyarrow.table(results.table("flows"))`,
    `pandas.DataFrame.from_arrow(...)`.
    """

    def __init__(self, experiment: _farpath.Experiment, inner: _farpath.Results) -> None:
        self._experiment = experiment
        self._inner = inner

    def table(self, name: str) -> _farpath.Table:
        """flows, series, segments, messages, routers, air, stations or provenance, by Arrow's PyCapsule interface."""
        return self._inner.table(name)

    @cached_property
    def flows(self) -> polars.DataFrame:
        """A row for each flow."""
        return _frame(self.table("flows"))

    @cached_property
    def series(self) -> polars.DataFrame:
        """A row for each value that changed: cwnd, srtt ... Recorded with `trace=True`."""
        return _frame(self.table("series"))

    @cached_property
    def segments(self) -> polars.DataFrame:
        """A row for each segment at one end, and each drop. Recorded with `trace=True`."""
        return _frame(self.table("segments"))

    @cached_property
    def messages(self) -> polars.DataFrame:
        """A row for each message of a stream. Recorded with `trace=True`."""
        return _frame(self.table("messages"))

    @cached_property
    def routers(self) -> polars.DataFrame:
        """A row for each flow router and direction."""
        return _frame(self.table("routers"))

    @cached_property
    def air(self) -> polars.DataFrame:
        """A row for each hop of a radio and use of its air."""
        return _frame(self.table("air"))

    @cached_property
    def stations(self) -> polars.DataFrame:
        """A row for each station on the air of a radio that other stations use too."""
        return _frame(self.table("stations"))

    @cached_property
    def summary(self) -> polars.DataFrame:
        """A row for each point and engine: the swept values, and the mean, `_ci95` and `_sd` of each statistic."""
        import polars

        points = self._inner.points
        rows = [
            {**dict(points[line["point"]]), **_flat(line)} for line in json.loads(self._inner.summaries())
        ]
        return polars.DataFrame(rows, infer_schema_length=None)

    @property
    def caveats(self) -> list[str]:
        """What to know of the numbers before they are trusted."""
        return self._inner.caveats

    def __len__(self) -> int:
        return len(self._inner)

    def __getitem__(self, index: int) -> Run:
        return Run(self, range(len(self))[index])

    def __iter__(self) -> Iterator[Run]:
        return (self[index] for index in range(len(self)))

    def __str__(self) -> str:
        return self._inner.text(120)

    def __repr__(self) -> str:
        return f"<Results of {self._inner.title!r}: {len(self)} runs>"

    @property
    def plot(self) -> Plots:
        """The figures of the sweep, as Altair charts: `.response_time()` and others."""
        from .plots import Plots

        return Plots(self._inner)

    def report(self, file: str | os.PathLike[str]) -> None:
        """Writes the report: one HTML file that needs no network."""
        with open(file, "w", encoding="utf-8") as out:
            out.write(self._inner.html())

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes the tables into a results folder, which `farpath report` reads."""
        self._inner.save(folder)


def _flat(line: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in line.items():
        if isinstance(value, dict) and "mean" in value:
            flat |= {name: value["mean"], f"{name}_ci95": value["ci95"], f"{name}_sd": value["sd"]}
        elif isinstance(value, dict) and "share" in value:
            flat[name] = value["share"]
        elif value is None:
            flat |= {name: None, f"{name}_ci95": None, f"{name}_sd": None}
        elif not isinstance(value, dict):
            flat[name] = value
    return flat


class Run:
    """One run: a point, an engine, a seed. Quantities are of its first flow."""

    def __init__(self, results: Results, index: int) -> None:
        self._results = results
        self._index = index
        self.point, self.engine, self.seed = results._inner.keys[index]

    def _of_run(self, frame: polars.DataFrame) -> polars.DataFrame:
        import polars

        seed = polars.col("seed").eq_missing(polars.lit(self.seed, dtype=polars.UInt64))
        return frame.filter(polars.col("point") == self.point, polars.col("engine") == self.engine, seed)

    @cached_property
    def flows(self) -> polars.DataFrame:
        return self._of_run(self._results.flows)

    @cached_property
    def _first(self) -> dict[str, Any]:
        return self.flows.row(0, named=True)

    @property
    def outcome(self) -> str:
        """completed, connect_timed_out, aborted, horizon, void, stuck, unknown."""
        return str(self._first["outcome"])

    @property
    def transfer_time(self) -> Duration | None:
        ns = self._first["transfer_time_ns"]
        return None if ns is None else Duration(ns / 1e9)

    @property
    def goodput(self) -> Rate | None:
        rate = self._first["goodput_bit_per_s"]
        return None if rate is None else Rate(rate)

    @property
    def efficiency(self) -> Share | None:
        """Goodput over throughput."""
        share = self._first["efficiency"]
        return None if share is None else Share(share)

    @cached_property
    def _traced(self) -> Results:
        """This run, with traces: simulated once more where it has none, which gives the same run."""
        experiment = self._results._experiment
        if self.engine == "predict":
            raise _farpath.ResultsError("a prediction is an expectation: it has no course to draw")
        if self.engine == "simulate" and not self._results._inner.traced:
            return Results(experiment, _farpath.run(experiment, [self.engine], True, (self.point, self.seed), None))
        alone = Results(experiment, self._results._inner.only(self._index))
        if not any(len(alone.table(name)) for name in ("series", "segments", "messages")):
            raise _farpath.ResultsError("a kernel does not repeat itself, and nothing was traced: ask it with trace=True")
        return alone

    @property
    def series(self) -> polars.DataFrame:
        """State over time: cwnd, ssthresh, srtt ..."""
        return self._traced.series

    @property
    def segments(self) -> polars.DataFrame:
        """Every segment at both ends, and every drop."""
        return self._traced.segments

    @property
    def plot(self) -> Plots:
        """The figures of this run, as Altair charts: `.cwnd()`, `.time_sequence()`, `.rtt()` ..."""
        from .plots import Plots

        return Plots(self._traced._inner)

    def __repr__(self) -> str:
        seed = "" if self.seed is None else f", seed {self.seed}"
        return f"<Run: point {self.point}, {self.engine}{seed}: {self.outcome}, {self.goodput}>"
