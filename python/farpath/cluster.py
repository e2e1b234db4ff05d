"""`farpath sweep --cluster ADDRESS`: the runs of a sweep on a Dask cluster."""

from __future__ import annotations

import argparse
import sys

from ._farpath import FarpathError
from .experiment import Experiment
from .sweeps import sweep


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="farpath sweep", description="Run a sweep on a Dask cluster.")
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("--out", required=True, metavar="DIR")
    parser.add_argument("--cluster", required=True, metavar="ADDRESS", help="the scheduler, such as tcp://host:8786")
    parser.add_argument("--engine", default="simulate", metavar="ENGINES", help="predict, simulate, emulate")
    parser.add_argument("--seeds", type=int, metavar="N")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--until", metavar="SHARE")
    parser.add_argument("--of", default="transfer_time_s", metavar="NAME")
    parser.add_argument("--most", type=int, default=1000, metavar="N")
    parser.add_argument("--chunk", type=int, metavar="N", help="runs in a task [default: by the cluster's threads]")
    parser.add_argument("--find", metavar="KEY")
    parser.add_argument("--crosses", metavar="VALUE")
    parser.add_argument("--json", action="store_true")
    return parser


def _progress(done: int, wanted: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{done}/{wanted} runs", end="\n" if done == wanted else "", file=sys.stderr, flush=True)


def main(arguments: list[str]) -> int:
    parser = _parser()
    args = parser.parse_args(arguments)
    if (args.find is None) != (args.crosses is None):
        parser.error("--find names a swept key, and --crosses the value that is looked for: both are needed")
    try:
        from distributed import Client
    except ImportError:
        print("farpath: --cluster: there is no Dask here: pip install 'farpath[dask]'", file=sys.stderr)
        return 2
    try:
        changes = dict(change.split("=", 1) for change in args.set if "=" in change)
        experiment = Experiment(args.file, seeds=args.seeds, set=changes)
        with Client(args.cluster, timeout="10 s") as client:
            engines = tuple(args.engine.split(","))
            done = sweep(
                experiment,
                args.out,
                engines=engines,
                until=args.until,
                find=args.find,
                crosses=args.crosses,
                of=args.of,
                most=args.most,
                chunk=args.chunk,
                client=client,
                progress=_progress,
            )
    except (FarpathError, ValueError) as error:
        print(f"farpath: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"farpath: --cluster: no scheduler is reached at {args.cluster}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("farpath: interrupted; the same command goes on", file=sys.stderr)
        return 130
    if args.find is not None:
        print("\n".join(done._inner.thresholds()))
    elif args.json:
        done._inner.write_points(print)
    else:
        print(done.folder / "points.parquet")
    return 0
