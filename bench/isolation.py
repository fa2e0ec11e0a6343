"""What the isolation library adds to a call of the driver: `make bench-isolation`.

Both columns are of the same run, over a driver that does nothing. A call is timed in hundreds, and the best hundred of
2000 counts, so that a busy machine changes little.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Final

from tests.isolation.build import build
from tests.isolation.node import Driver

GOALS_NS: Final = {"allocate-and-free": "160", "get-info": "-", "launch-graph": "20", "any-other": "0"}
"""What a call may cost more than without the library."""


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        driver = Driver(Path(scratch, "halfcard"))
        driver.container()
        nothing = build(Path(scratch, "nothing.so"), ["nothing.c"], "-O2", "-Wl,-soname,libcuda.so.1")
        bare = driver.folder / "driver" / "libcuda.so.1"
        nothing.rename(bare)
        cost = build(Path(scratch, "cost"), ["cost.c"], "-O2")
        without, limited = figures(cost, bare), figures(cost, driver.library)
    print(f"{'call':20} {'bare':>8} {'limited':>8} {'more':>8} {'goal':>8}  ns")
    for call, goal in GOALS_NS.items():
        more = limited[call] - without[call]
        print(f"{call:20} {without[call]:8.1f} {limited[call]:8.1f} {more:8.1f} {goal:>8}")


def figures(cost: Path, library: Path) -> dict[str, float]:
    words = subprocess.run([str(cost), str(library)], capture_output=True, text=True, check=True).stdout.split()
    return dict(zip(words[::2], map(float, words[1::2]), strict=True))


if __name__ == "__main__":
    main()
