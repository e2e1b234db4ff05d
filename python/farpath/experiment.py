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
        quick_path: dict[str, Any] = {"delay": delay, "rate": rate, "size": size, "loss": loss, "stack": stack, "window": window}
        quick_path = {name: _text(value) for name, value in quick_path.items()}
        given = [name for name, value in quick_path.items() if value is not None]
        if file is not None:
            if given:
                raise TypeError(f"{given[0]} stands in place of a file, and a file is given too; to change a value say set=")
            self._inner = _farpath.Experiment.load(os.fspath(file), changes)
            return
        missing = [name for name in ("delay", "rate", "size") if name not in given]
        if missing:
            raise TypeError(f"{', '.join(missing)} missing; expected a file, or in its place delay, rate and size")
        self._inner = _farpath.Experiment.quick_path(**quick_path, set=changes)

    @classmethod
    def parse(cls, text: str, *, origin: str = "text", set: Mapping[str, object] | None = None) -> Self:
        """The text of an experiment file. Files that it names are looked for beside `origin`."""
        return cls._of(_farpath.Experiment.parse(text, origin, _changes(set, None)))

    @classmethod
    def measured(
        cls,
        host: str,
        *,
        size: Size | str = "10 MB",
        key: str | os.PathLike[str] | None = None,
        echoes: int = 1000,
    ) -> Self:
        """The path to a host with `farpath serve`, as it was found, and a transfer of this size over it.

        Beside each value its text says how it was found. A host that is not reached, or does not let this one in by its
        `key`, is an `EngineError`.
        """
        return cls._of(_farpath.measured_path(host, _text(size) or "", echoes, key))

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

    def emulate(
        self, *, clock: str | None = None, kernel: str | None = None, trace: bool = False, progress: Progress | None = None
    ) -> Results:
        """Asks a Linux kernel's TCP: the running one's in real time, or another's in virtual time.

        `clock="virtual"`, and `kernel=` which is one of them, stand in place of what the experiment says.
        """
        # Whoever names a kernel means its clock.
        given = {"emulate.clock": clock or (kernel and "virtual"), "emulate.kernel": kernel}
        changes = {key: value for key, value in given.items() if value is not None}
        experiment = self.with_(changes) if changes else self
        return experiment.run("emulate", trace=trace, progress=progress)

    def measure(
        self,
        host: str,
        *,
        key: str | os.PathLike[str] | None = None,
        trace: bool = False,
        progress: Progress | None = None,
    ) -> Results:
        """Does its transfers between this host and another, `HOST` or `HOST:PORT`, with `farpath serve` on it.

        The path of the experiment is not used: the network is the path. `key` is the file of the key that both have.
        """
        return Results(self._inner, _farpath.measure(self._inner, host, key, trace, progress))

    def explain(
        self, *, point: int = 0, seeds: int | None = None, progress: Progress | None = None
    ) -> dict[str, Any]:
        """What bounds a transfer, which pitfalls it meets, and what a change gains, as `farpath explain --json` has it.

        `seeds` is how often each variant is simulated, of itself as often as ten seconds of a core allow.
        """
        explanation: dict[str, Any] = json.loads(_farpath.explain(self._inner, point, seeds, progress))
        return explanation


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
    experiment: Experiment | str | os.PathLike[str] | None = None,
    *,
    clock: str | None = None,
    kernel: str | None = None,
    trace: bool = False,
    **keywords: Any,
) -> Results:
    """Asks a Linux kernel's TCP, as `Experiment.emulate`; other keywords are those of `Experiment`."""
    return _experiment(experiment, keywords).emulate(clock=clock, kernel=kernel, trace=trace)


def measure(
    experiment: Experiment | str | os.PathLike[str],
    host: str,
    *,
    key: str | os.PathLike[str] | None = None,
    trace: bool = False,
    **keywords: Any,
) -> Results:
    """Does the transfers between this host and another; keywords are those of `Experiment`."""
    return _experiment(experiment, keywords).measure(host, key=key, trace=trace)


def explain(
    experiment: Experiment | str | os.PathLike[str] | None = None, *, point: int = 0, **keywords: Any
) -> dict[str, Any]:
    """What bounds a transfer, which pitfalls it meets, and what a change gains; keywords are those of `Experiment`."""
    return _experiment(experiment, keywords).explain(point=point)
