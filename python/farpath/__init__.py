"""Will TCP work over this path, how well, why not better, and what would fix it?

    >>> import farpath
    >>> geo = farpath.Experiment(delay="300 ms", rate="10 Mbit/s", size="20 MB", loss="0.1 %")
    >>> results = geo.run("predict", "simulate")
    >>> results.summary                # a polars frame: a row for each point and engine
    >>> results[1].plot.cwnd()         # an Altair chart
"""

from ._farpath import (
    PROGRAM,
    CommandError,
    EngineError,
    ExperimentError,
    FarpathError,
    ResultsError,
    SweepError,
    Table,
    UnitError,
    __version__,
)
from .command import VERDICTS, papers, radius
from .experiment import Experiment, emulate, explain, measure, predict, simulate
from .quantities import Duration, Rate, Share, Size
from .results import Results, Run
from .sweeps import Sweep, sweep

__all__ = [
    "PROGRAM",
    "CommandError",
    "Duration",
    "EngineError",
    "Experiment",
    "ExperimentError",
    "FarpathError",
    "Rate",
    "Results",
    "ResultsError",
    "Run",
    "Share",
    "Size",
    "Sweep",
    "SweepError",
    "Table",
    "UnitError",
    "VERDICTS",
    "__version__",
    "emulate",
    "explain",
    "measure",
    "papers",
    "predict",
    "radius",
    "simulate",
    "sweep",
]
