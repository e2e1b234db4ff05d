"""The figures of the report as Altair charts: the same definitions, and the same data."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from . import _farpath

if TYPE_CHECKING:
    import altair


class Plots:
    """Figures by name; `names` are those that these runs have.

    A chart shows itself in a notebook. `chart.save("cwnd.svg")` writes SVG, PNG, PDF or HTML; none needs a network, HTML with
    `chart.save("cwnd.html", inline=True)`.
    """

    def __init__(self, results: _farpath.Results) -> None:
        self._figures: dict[str, list[tuple[str, dict[str, Any]]]] = {}
        for title, _, text in results.figures():
            figure = json.loads(text)
            self._figures.setdefault(figure["plot"], []).append((title, figure))

    @property
    def names(self) -> list[str]:
        return list(self._figures)

    def chart(self, name: str, number: int = 0) -> altair.Chart | altair.LayerChart | Any:
        """The figure of this name, or number `number` of several."""
        if name not in _farpath.PLOTS:
            raise KeyError(f"no plot is called {name!r}; there are: {', '.join(_farpath.PLOTS)}")
        figures = self._figures.get(name, [])
        if number >= len(figures):
            raise _farpath.ResultsError(f"these runs have no figure `{name}`; they have: {', '.join(self.names) or 'none'}")
        title, figure = figures[number]
        return draw(name, title, figure["set"], {table: _rows(columns) for table, columns in figure["data"].items()})

    def cwnd(self) -> altair.Chart | altair.LayerChart | Any:
        """cwnd, ssthresh and flight_size over time."""
        return self.chart("windows")

    def time_sequence(self) -> altair.Chart | altair.LayerChart | Any:
        """Sequence numbers over time: sent, sent again, dropped, acknowledged."""
        return self.chart("time-sequence")

    def rtt(self) -> altair.Chart | altair.LayerChart | Any:
        """Round-trip time and the retransmission timer."""
        return self.chart("rtt")

    def response_time(self) -> altair.Chart | altair.LayerChart | Any:
        """Transfer time over the points of a sweep, engines beside each other; of many points as a curve."""
        return self.chart("curve" if "curve" in self.names else "response-time")


def draw(name: str, title: str, set: dict[str, Any], data: dict[str, list[dict[str, Any]]]) -> Any:
    """The plot `name` of the folder `plots/` with these values in it and this data, as an Altair chart."""
    import altair

    spec = json.loads(_farpath.plot(name) or "{}")
    for pointer, value in set.items():
        _set(spec, pointer, value)
    view = spec["spec"] if "facet" in spec else spec
    if "layer" in view:
        view["layer"] = [layer for layer in view["layer"] if layer is not None]
    if spec.get("width") == "container":
        # A file has no container to fill.
        spec["width"] = 640
    spec |= {"title": title, "datasets": data}
    if "layer" not in spec:
        return altair.Chart.from_dict(spec)
    # Altair lifts the selections of layers out of them, and loses which layer they were of: here these do not zoom.
    for layer in spec["layer"]:
        layer.pop("params", None)
    return altair.LayerChart.from_dict(spec)


def _rows(columns: dict[str, Any]) -> list[dict[str, Any]]:
    cells = [
        column if isinstance(column, list) else [column["texts"][row] for row in column["rows"]]
        for column in columns.values()
    ]
    return [dict(zip(columns, row, strict=True)) for row in zip(*cells, strict=True)]


def _set(spec: Any, pointer: str, value: Any) -> None:
    *keys, last = pointer.split("/")[1:]
    for key in keys:
        spec = spec[int(key)] if isinstance(spec, list) else spec.setdefault(key, {})
    if isinstance(spec, list):
        spec[int(last)] = value
    else:
        spec[last] = value
