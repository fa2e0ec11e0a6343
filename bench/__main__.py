"""`python -m bench`: every measurement, as a table on standard output and as JSON in a file."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from . import dense_bodies, go_handler, linearity, memory, offline, start, throughput
from .figures import Part, table, write_json
from .servers import ROOT, scratch

_OUT: Final = ROOT / "bench" / "out" / "bench.json"


def main(argv: Sequence[str] | None = None) -> int:
    arguments = _parser().parse_args(argv)
    # On a busy machine only the ratios are meaningful.
    busy = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before the run"
    parts = _quick() if arguments.quick else _full()
    print(f"{busy}\n\n{table(parts)}")
    write_json(parts, arguments.json)
    print(f"\nwritten to {arguments.json}", file=sys.stderr)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--json", type=Path, default=_OUT, metavar="FILE", help="default %(default)s")
    parser.add_argument("--quick", action="store_true", help="a few seconds and rough numbers")
    return parser


def _full() -> list[Part]:
    with scratch() as folder:
        return [
            throughput.measure(folder, throughput.Rounds()),
            go_handler.measure(folder, go_handler.Comparison()),
            linearity.measure(),
            dense_bodies.measure(),
            memory.measure(folder),
            start.measure(),
            offline.measure(folder),
        ]


def _quick() -> list[Part]:
    with scratch() as folder:
        return [
            throughput.measure(folder, throughput.Rounds(rounds=2, calls=100)),
            linearity.measure(repeats=1),
            memory.measure(folder, counts=(100, 200)),
            start.measure(repeats=1),
            offline.measure(folder, pods=100),
        ]


if __name__ == "__main__":
    sys.exit(main())
