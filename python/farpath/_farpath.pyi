from collections.abc import Callable
from typing import Any, final

__all__ = [
    "EngineError",
    "Experiment",
    "ExperimentError",
    "FarpathError",
    "PLOTS",
    "PROGRAM",
    "Results",
    "ResultsError",
    "Sweep",
    "SweepError",
    "Table",
    "UnitError",
    "__version__",
    "explain",
    "main",
    "measure",
    "measured_path",
    "papers",
    "parse",
    "plot",
    "run",
    "run_chunk",
    "show",
]

__version__: str
PROGRAM: str
PLOTS: list[str]

class FarpathError(Exception): ...

class ExperimentError(FarpathError):
    file: str
    key: str

class EngineError(FarpathError): ...
class ResultsError(FarpathError): ...
class SweepError(FarpathError): ...
class UnitError(FarpathError): ...

@final
class Table:
    columns: list[tuple[str, str, str]]
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
    def __len__(self) -> int: ...

@final
class Experiment:
    title: str
    text: str
    origin: str
    changes: list[str]
    seeds: int
    axes: list[list[str]]
    points: list[list[tuple[str, str]]]
    warnings: list[list[str]]
    @staticmethod
    def load(file: str, set: list[str]) -> Experiment: ...
    @staticmethod
    def parse(text: str, origin: str, set: list[str]) -> Experiment: ...
    @staticmethod
    def sketch(
        delay: str, rate: str, size: str, loss: str | None, stack: str | None, window: str | None, set: list[str]
    ) -> Experiment: ...

@final
class Results:
    keys: list[tuple[int, str, int | None]]
    title: str
    points: list[list[tuple[str, str]]]
    caveats: list[str]
    traced: bool
    def __len__(self) -> int: ...
    def table(self, name: str) -> Table: ...
    def only(self, index: int) -> Results: ...
    def summaries(self) -> str: ...
    def text(self, width: int) -> str: ...
    def figures(self) -> list[tuple[str, str, str]]: ...
    def html(self) -> str: ...
    def save(self, folder: Any) -> None: ...

@final
class Sweep:
    def __new__(cls, experiment: Experiment, out: str, engines: list[str]) -> Sweep: ...
    def status(self) -> tuple[int, int]: ...
    def run(self, chunk: int = 4096, progress: Callable[[int, int], object] | None = None) -> None: ...
    def missing(self, runs: int) -> list[list[tuple[int, str, str, int, int]]]: ...
    def keep(self, name: str, bytes: bytes, runs: int) -> None: ...
    def more_seeds(self, until: str, of: str, most: int) -> bool: ...
    def write_points(self) -> list[str]: ...
    def release(self) -> None: ...
    def flows(self) -> Table: ...

def main(args: list[str]) -> int: ...
def plot(name: str) -> str | None: ...
def parse(kind: str, text: str) -> float: ...
def show(kind: str, value: float) -> str | None: ...
def run(
    experiment: Experiment,
    engines: list[str],
    trace: bool = False,
    only: tuple[int, int | None] | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Results: ...
def explain(
    experiment: Experiment,
    point: int = 0,
    seeds: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> str: ...
def measure(
    experiment: Experiment,
    host: str,
    key: Any | None = None,
    trace: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> Results: ...
def measured_path(host: str, size: str, echoes: int, key: Any | None = None) -> Experiment: ...
def papers(
    ids: list[str], emulate: bool = False, progress: Callable[[int, int], object] | None = None
) -> list[str]: ...
def run_chunk(
    experiment: Experiment, spans: list[tuple[int, str, str, int, int]], asked_by: str
) -> tuple[str, bytes, int]: ...
