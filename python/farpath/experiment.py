"""Experiments, and the engines that answer them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any, Self

from . import _farpath
from .quantities import Duration, Quantity, Rate, Share, Size
from .results import Results

Progress = Callable[[int, int], object]


def _value(value: object) -> str:
    if isinstance(value, Quantity):
        return value.exact
    if isinstance(value, list | tuple):
        return json.dumps([each.exact if isinstance(each, Quantity) else each for each in value])
    return value if isinstance(value, str) else json.dumps(value)


def _text(value: Quantity | str | None) -> str | None:
    return value.exact if isinstance(value, Quantity) else value


def _changes(set: Mapping[str, object] | None, seeds: int | None) -> list[str]:
    changes = [f"{key}={_value(value)}" for key, value in (set or {}).items()]
    return changes if seeds is None else [*changes, f"seeds={seeds}"]


class Experiment:
    """A checked experiment: a file, one that ships, or a path in a few keywords.

    `Experiment("geo.toml")`, `Experiment("noisy-channel", seeds=5, set={"path.loss": "1 %"})`,
    `Experiment(delay="300 ms", rate="10 Mbit/s", size="100 MB", loss="1 %", stack="linux-6", window="4 MB")`.
    `set` changes values of it by their dotted keys, as `--set` does. What is wrong is an `ExperimentError`.
    """

    _inner: _farpath.Experiment

    def __init__(
        self,
        file: str | os.PathLike[str] | None = None,
        *,
        delay: Duration | str | None = None,
        rate: Rate | str | None = None,
        size: Size | str | None = None,
        loss: Share | str | None = None,
        stack: str | None = None,
        window: Size | str | None = None,
        seeds: int | None = None,
        set: Mapping[str, object] | None = None,
    ) -> None:
        changes = _changes(set, seeds)
        sketch: dict[str, Any] = {"delay": delay, "rate": rate, "size": size, "loss": loss, "stack": stack, "window": window}
        sketch = {name: _text(value) for name, value in sketch.items()}
        given = [name for name, value in sketch.items() if value is not None]
        if file is not None:
            if given:
                raise TypeError(f"{given[0]} stands in place of a file, and a file is given too; to change a value say set=")
            self._inner = _farpath.Experiment.load(os.fspath(file), changes)
            return
        missing = [name for name in ("delay", "rate", "size") if name not in given]
        if missing:
            raise TypeError(f"{', '.join(missing)} missing; expected a file, or in its place delay, rate and size")
        self._inner = _farpath.Experiment.sketch(**sketch, set=changes)

    @classmethod
    def parse(cls, text: str, *, origin: str = "text", set: Mapping[str, object] | None = None) -> Self:
        """The text of an experiment file. Files that it names are looked for beside `origin`."""
        return cls._of(_farpath.Experiment.parse(text, origin, _changes(set, None)))

    @classmethod
    def _of(cls, inner: _farpath.Experiment) -> Self:
        experiment = cls.__new__(cls)
        experiment._inner = inner
        return experiment

    def with_(self, set: Mapping[str, object] | None = None, *, seeds: int | None = None) -> Self:
        """The same with other values on top."""
        changes = [*self._inner.changes, *_changes(set, seeds)]
        return self._of(_farpath.Experiment.parse(self.text, self._inner.origin, changes))

    @property
    def title(self) -> str:
        return self._inner.title

    @property
    def text(self) -> str:
        """The file as it was given."""
        return self._inner.text

    @property
    def points(self) -> list[dict[str, str]]:
        """The keys and values that make each point of the sweep."""
        return [dict(point) for point in self._inner.points]

    @property
    def seeds(self) -> int:
        return self._inner.seeds

    def __repr__(self) -> str:
        points = len(self._inner.points)
        return f"<Experiment {self.title!r}: {points} point{'s' * (points > 1)}, {self.seeds} seed{'s' * (self.seeds > 1)}>"

    def run(self, *engines: str, trace: bool = False, progress: Progress | None = None) -> Results:
        """Runs it on these engines, side by side: "predict", "simulate", "emulate".

        `trace` records series, segments and messages of every run. `progress` is called with how many runs are done, and
        of how many. Ctrl-C is raised at once.
        """
        return Results(self._inner, _farpath.run(self._inner, list(engines), trace, None, progress))

    def predict(self) -> Results:
        """Asks the closed forms."""
        return self.run("predict")

    def simulate(self, *, trace: bool = False, progress: Progress | None = None) -> Results:
        """Simulates it packet by packet."""
        return self.run("simulate", trace=trace, progress=progress)

    def emulate(self, *, trace: bool = False, progress: Progress | None = None) -> Results:
        """Asks a Linux kernel's TCP: the running one's in real time, or another's in virtual time."""
        return self.run("emulate", trace=trace, progress=progress)

    def explain(self, *, point: int = 0) -> dict[str, Any]:
        """What bounds a transfer, which traps it meets, and what a change gains."""
        from .command import explain

        return explain(self, point=point)


def _experiment(what: Experiment | str | os.PathLike[str] | None, keywords: dict[str, Any]) -> Experiment:
    if isinstance(what, Experiment):
        return what.with_(keywords.pop("set", None), seeds=keywords.pop("seeds", None), **keywords) if keywords else what
    return Experiment(what, **keywords)


def predict(experiment: Experiment | str | os.PathLike[str] | None = None, **keywords: Any) -> Results:
    """Asks the closed forms; keywords are those of `Experiment`."""
    return _experiment(experiment, keywords).predict()


def simulate(
    experiment: Experiment | str | os.PathLike[str] | None = None, *, trace: bool = False, **keywords: Any
) -> Results:
    """Simulates packet by packet; keywords are those of `Experiment`."""
    return _experiment(experiment, keywords).simulate(trace=trace)


def emulate(
    experiment: Experiment | str | os.PathLike[str] | None = None, *, trace: bool = False, **keywords: Any
) -> Results:
    """Asks a Linux kernel's TCP; keywords are those of `Experiment`."""
    return _experiment(experiment, keywords).emulate(trace=trace)
