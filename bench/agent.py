"""`python -m bench.agent`: the cost of the node agent next to floors of the same run, as a table and as JSON.

`python -m bench.agent_starts` measures what the pods of a real kubelet wait for; it takes minutes and needs root.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from . import agent_life, agent_plugin, agent_scrape
from .figures import Part, table, write_json
from .servers import ROOT, scratch

_OUT: Final = ROOT / "bench" / "out" / "agent.json"


def main(argv: Sequence[str] | None = None) -> int:
    arguments = _parser().parse_args(argv)
    busy = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before the run"
    parts = _measure(is_quick=arguments.quick)
    print(f"{busy}\n\n{table(parts)}")
    write_json(parts, arguments.json)
    print(f"\nwritten to {arguments.json}", file=sys.stderr)
    return 0


def _measure(*, is_quick: bool) -> list[Part]:
    with scratch() as folder:
        parts = agent_plugin.measure(folder, 3 if is_quick else 30)
    parts += agent_scrape.measure(200, 20 if is_quick else 300)
    with scratch() as folder:
        life = agent_life.measure(folder, starts=1, idle_s=1.0) if is_quick else agent_life.measure(folder)
        return [*parts, *asyncio.run(life)]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.agent", description=__doc__)
    parser.add_argument("--json", type=Path, default=_OUT, metavar="FILE", help="default %(default)s")
    parser.add_argument("--quick", action="store_true", help="some seconds and rough numbers")
    return parser


if __name__ == "__main__":
    sys.exit(main())
