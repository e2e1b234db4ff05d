from collections.abc import Callable
from typing import Any, final

__all__ = [
    "CommandError",
    "EngineError",
    "Experiment",
    "ExperimentError",
    "FarpathError",
    "Missing",
    "PLOTS",
    "VERDICTS",
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
    "radius",
    "run",
    "run_chunk",
    "show",
    "start_program_by",
]

__version__: str
PROGRAM: str
PLOTS: list[str]
VERDICTS: list[tuple[str, str]]

class FarpathError(Exception): ...

class ExperimentError(FarpathError):
    file: str
    key: str

class EngineError(FarpathError): ...
class ResultsError(FarpathError): ...
class SweepError(FarpathError): ...
class UnitError(FarpathError): ...
class CommandError(FarpathError): ...

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
    def quick_path(
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
class Missing:
    def __bool__(self) -> bool: ...
    def __iter__(self) -> Missing: ...
    def __next__(self) -> list[tuple[int, str, str, int, int]]: ...

@final
class Sweep:
    def __new__(
        cls, experiment: Experiment, out: str, engines: list[str], find: tuple[str, str, str] | None = None
    ) -> Sweep: ...
    def status(self) -> tuple[int, int]: ...
    def run(self, chunk: int = 4096, progress: Callable[[int, int], object] | None = None) -> int: ...
    def more_points(self) -> bool: ...
    def thresholds(self) -> list[str]: ...
    def missing(self, runs: int, emulated: bool) -> Missing: ...
    def keep(self, name: str, bytes: bytes, runs: int) -> None: ...
    def more_seeds(self, until: str, of: str, most: int) -> bool: ...
    def write_points(self, take: Callable[[str], object] | None = None) -> None: ...
    def release(self) -> None: ...
    def flows(self) -> Table: ...

def main(args: list[str]) -> int: ...
def plot(name: str) -> str | None: ...
def start_program_by(interpreter: list[str], code: str) -> None: ...
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
def radius(
    stacks: list[str],
    to: str | None,
    via: str | None,
    rate: str | None,
    loss: list[str],
    gap: str | None,
    check: bool,
    progress: Callable[[int, int], object] | None,
) -> list[str]: ...
def papers(
    ids: list[str], emulate: bool = False, progress: Callable[[int, int], object] | None = None
) -> list[str]: ...
def run_chunk(
    experiment: Experiment, spans: list[tuple[int, str, str, int, int]], asked_by: str
) -> tuple[str, bytes, int]: ...
